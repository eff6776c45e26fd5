-- needs: env friend_edge
-- Takes friends off a user's list, or else names those whose reverse edges were
-- left.
--
-- ARGV[2]  user   ARGV[3] how many at most
-- reply    {stamp, friend, …}; none if there is nothing left
-- cost     O(log n) for each

local user, most, stamp = ARGV[2], tonumber(ARGV[3]), fresh()
local names = call('ZRANGE', key('f:' .. user), 0, most - 1)
if #names > 0 then
  advance()
  call('ZREM', key('f:' .. user), unpack(names))
  call('HINCRBY', part, 'edges', -#names)
  loosen(user, stamp, names)
  stampNow(user, stamp, true)
else
  names = looseOf(user, most)
  if #names > 0 then stampNow(user, stamp, true) else forgetEdges(user) end
end
return done({stamp, unpack(names)})

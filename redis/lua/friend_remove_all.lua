-- needs: env friend_edge user_erasure
-- Takes friends off the list of a user who is being erased, or else names those whose
-- reverse edges were left.
--
-- ARGV[2]  user   ARGV[3]  id of the erasure   ARGV[4]  how many at most
-- reply    {stamp, friend, …}; no friend if there is nothing left, or the user is gone
--          already
-- cost     O(log n) for each

local user, most, stamp = ARGV[2], tonumber(ARGV[4]), fresh()
if not stillErasing(user, ARGV[3]) then return done({stamp}) end
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

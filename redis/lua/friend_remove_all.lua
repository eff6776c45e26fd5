-- needs: env friend_edge user_erasure
-- Removes friends from the list of a user who is being erased. Once the list is
-- empty, it names those whose reverse edges are left.
--
-- returns  {stamp, friend, …}; no friend if there is nothing left, or the user is
--          gone already
-- costs    O(log n) for each

local user = ARGV[2]
local id = ARGV[3] -- of the erasure
local most = tonumber(ARGV[4])

local stamp = newStamp()
if not stillErasing(user, id) then return done({stamp}) end
local names = call('ZRANGE', key('f:' .. user), 0, most - 1)
if #names > 0 then
  advance()
  call('ZREM', key('f:' .. user), unpack(names))
  call('HINCRBY', part, 'edges', -#names)
  noteLeftovers(user, stamp, names)
  setStamps(user, stamp, true)
else
  names = leftoversOf(user, most)
  if #names > 0 then setStamps(user, stamp, true) else forgetStamps(user) end
end
return done({stamp, unpack(names)})

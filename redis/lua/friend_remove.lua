-- needs: env friend_edge
-- Removes friends of users.
--
-- returns  {stamp, how many there were, users whose list has changed…}
-- costs    O(log n) for each

local asOf = tonumber(ARGV[2]) -- a stamp: lists that have changed since stay as they are, and the caller removes the reverse edges. nil ('') leaves these to be pruned
local edges = argumentsFrom(3) -- user, friend, …

local n, stamp, changed = 0, newStamp(), {}
for i = 1, #edges, 2 do
  local user, friend = edges[i], edges[i + 1]
  if asOf and stampOf(user, LAST) > asOf then
    changed[#changed + 1] = user
  else
    local there = call('ZREM', key('f:' .. user), friend)
    n = n + there
    if asOf then
      call('ZREM', key('x:' .. user), friend)
      setStamps(user, stamp, true)
    elseif there == 1 then
      noteLeftovers(user, stamp, {friend})
      setStamps(user, stamp, true)
    end
  end
end
if n > 0 then
  advance()
  call('HINCRBY', part, 'edges', -n)
end
return done({stamp, n, unpack(changed)})

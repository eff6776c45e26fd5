-- needs: env friend_edge
-- Removes friends of users.
--
-- ARGV[2]  '' if their reverse edges are left to be pruned; if the caller does so, a
--          stamp of the partition: lists that have changed since then stay as they are
-- ARGV[3…] user, friend, …
-- reply    {stamp, how many there were, users whose list has changed…}
-- cost     O(log n) for each

local line, n, stamp, later = tonumber(ARGV[2]), 0, fresh(), {}
for i = 3, #ARGV, 2 do
  local user, friend = ARGV[i], ARGV[i + 1]
  if line and stampOf(user, LAST) > line then
    later[#later + 1] = user
  else
    local there = call('ZREM', key('f:' .. user), friend)
    n = n + there
    if line then
      call('ZREM', key('x:' .. user), friend)
      stampNow(user, stamp, true)
    elseif there == 1 then
      loosen(user, stamp, {friend})
      stampNow(user, stamp, true)
    end
  end
end
if n > 0 then
  advance()
  call('HINCRBY', part, 'edges', -n)
end
return done({stamp, n, unpack(later)})

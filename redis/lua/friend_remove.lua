-- needs: env friend_edge
-- Removes friends of users.
--
-- ARGV[2]  1 if their reverse edges are left to be pruned, 0 if the caller does so
-- ARGV[3…] user, friend, …
-- reply    {stamp, how many there were}
-- cost     O(log n) for each

local n, stamp = 0, fresh()
for i = 3, #ARGV, 2 do
  local user, friend = ARGV[i], ARGV[i + 1]
  local there = call('ZREM', key('f:' .. user), friend)
  n = n + there
  if ARGV[2] == '0' then
    call('ZREM', key('x:' .. user), friend)
    stampNow(user, stamp, true)
  elseif there == 1 then
    loosen(user, stamp, {friend})
    stampNow(user, stamp, true)
  end
end
if n > 0 then
  advance()
  call('HINCRBY', part, 'edges', -n)
end
return done({stamp, n})

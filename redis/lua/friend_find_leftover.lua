-- needs: env friend_edge
-- Looks for reverse edges that were left: those of users whose friends have not
-- changed for a while.
--
-- ARGV[2]  how long, microseconds   ARGV[3] how many at most
-- reply    {{user, stamp, friend, …}, …}
-- cost     O(log n) for each

local t, most, out = call('TIME'), tonumber(ARGV[3]), {}
local line = num(t[1] * 1000000 + t[2] - tonumber(ARGV[2]))
for _, user in ipairs(call('ZRANGEBYSCORE', key('leftovers'), '-inf', line, 'LIMIT', 0, most)) do
  if most <= 0 then break end
  local names = looseOf(user, most)
  most = most - 1 - #names
  if #names == 0 then
    forgetEdges(user)
  else
    local left, stays = {}, {}
    for i, since in ipairs(call('ZMSCORE', key('f:' .. user), unpack(names))) do
      local into = since and stays or left
      into[#into + 1] = names[i]
    end
    -- A change under way may have noted those that stay, to take them off.
    local stamp = fresh()
    call('ZADD', key('x:' .. user), stamp, FENCE)
    if #stays > 0 then call('ZREM', key('x:' .. user), unpack(stays)) end
    if #left > 0 then out[#out + 1] = {user, stamp, unpack(left)} end
  end
end
return done(out)

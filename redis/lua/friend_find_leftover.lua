-- needs: env friend_edge
-- Finds reverse edges without an edge, of users whose friends have not changed for a
-- while, and gives them up.
--
-- returns  {{user, stamp, friend, …}, …}
-- costs    O(log n) for each

local age = tonumber(ARGV[2]) -- how long the friends have not changed, microseconds
local most = tonumber(ARGV[3]) -- reverse edges

local t, out = call('TIME'), {}
local line = num(t[1] * 1000000 + t[2] - age)
for _, user in ipairs(call('ZRANGEBYSCORE', key('leftovers'), '-inf', line, 'LIMIT', 0, most)) do
  if most <= 0 then break end
  local names = leftoversOf(user, most)
  most = most - 1 - #names
  if #names == 0 then
    forgetStamps(user)
  else
    local left, stays = {}, {}
    for i, since in ipairs(call('ZMSCORE', key('f:' .. user), unpack(names))) do
      local into = since and stays or left
      into[#into + 1] = names[i]
    end
    -- The fence comes before the notes of edges that stand are forgotten: a change
    -- under way may have noted them, to remove these edges.
    local stamp = newStamp()
    call('ZADD', key('x:' .. user), stamp, FENCE)
    if #stays > 0 then call('ZREM', key('x:' .. user), unpack(stays)) end
    if #left > 0 then out[#out + 1] = {user, stamp, unpack(left)} end
  end
end
return done(out)

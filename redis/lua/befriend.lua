-- Changes the friends of a user.
--
-- ARGV[2]   user
-- ARGV[3]   1 if those not named leave the list
-- ARGV[4]   how many friends a user may have
-- ARGV[5…]  friend, since (ms) or '' to keep what stands and else take now, …
-- reply     {'ok', those who left the list…} or {'limit', n}, nothing changed
-- cost      O(log n) for each

local mine, limit = key('f:' .. ARGV[2]), tonumber(ARGV[4])
local named, left, total = {}, {}, 0
for i = 5, #ARGV, 2 do named[ARGV[i]] = true end
for _, friend in ipairs(call('ZRANGE', mine, 0, -1)) do
  if ARGV[3] == '1' and not named[friend] then
    left[#left + 1] = friend
  else
    named[friend] = nil
    total = total + 1
  end
end
for _ in pairs(named) do total = total + 1 end
if total > limit then return done({'limit', total}) end
advance()
local before = call('ZCARD', mine)
for i = 1, #left do call('ZREM', mine, left[i]) end
for i = 5, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    call('ZADD', mine, 'NX', num(at), ARGV[i])
  else
    call('ZADD', mine, ARGV[i + 1], ARGV[i])
  end
end
local difference = call('ZCARD', mine) - before
if difference ~= 0 then call('HINCRBY', part, 'edges', difference) end
table.insert(left, 1, 'ok')
return done(left)

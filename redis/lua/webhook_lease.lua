-- Gives a server the right to deliver for a webhook, prolongs it, or takes it back.
--
-- returns  1 if it is the holder's now, 0 if another has it, -1 if there is no such webhook
-- costs    O(1)

local hooks = KEYS[1] -- rc:hooks
local id, holder = ARGV[1], ARGV[2]
local now, till = tonumber(ARGV[3]), ARGV[4] -- ms

local held = redis.call('HMGET', hooks, 'r:' .. id, 'h:' .. id, 'u:' .. id)
if not held[1] then return -1 end
if held[2] and held[2] ~= holder and now < tonumber(held[3]) then return 0 end
if tonumber(till) > now then
  redis.call('HSET', hooks, 'h:' .. id, holder, 'u:' .. id, till)
else
  redis.call('HDEL', hooks, 'h:' .. id, 'u:' .. id)
end
return 1

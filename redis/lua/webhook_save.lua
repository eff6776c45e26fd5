-- Saves how far a webhook has been served, if the server still has its lease.
--
-- returns  1, 0 without the lease, -1 if there is no such webhook
-- costs    O(1)

local hooks = KEYS[1] -- rc:hooks
local id, holder = ARGV[1], ARGV[2]
local now = tonumber(ARGV[3]) -- ms
local state = ARGV[4]

local held = redis.call('HMGET', hooks, 'r:' .. id, 'h:' .. id, 'u:' .. id)
if not held[1] then return -1 end
if held[2] ~= holder or now >= tonumber(held[3]) then return 0 end
redis.call('HSET', hooks, 's:' .. id, state)
return 1

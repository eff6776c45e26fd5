-- Stores an API key.
--
-- returns  1, or 0 if there are too many
-- costs    O(1)

local keys = KEYS[1] -- rc:keys
local hash = ARGV[1] -- of the key's text
local record = ARGV[2]
local limit = tonumber(ARGV[3])

if redis.call('HEXISTS', keys, hash) == 0 and redis.call('HLEN', keys) >= limit then return 0 end
redis.call('HSET', keys, hash, record)
return 1

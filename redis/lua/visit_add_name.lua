-- Enters a name of visits among those known.
--
-- returns  1, or 0 if there are too many
-- costs    O(1)

local names = KEYS[1] -- rc:names
local name = ARGV[1]
local limit = tonumber(ARGV[2])
local reserved = ARGV[3] -- a name for which there always is room

if redis.call('SISMEMBER', names, name) == 1 then return 1 end
local known = redis.call('SCARD', names) - redis.call('SISMEMBER', names, reserved)
if name ~= reserved and known >= limit then return 0 end
redis.call('SADD', names, name)
return 1

-- Ends the sample under way and begins the next one, unless another server has done so.
--
-- returns  1, 0 if another server has
-- costs    O(1)

local samples = KEYS[1] -- rc:samples
local underWay = ARGV[1] -- the minute whose sample ends, 0 for none
local fields = {unpack(ARGV, 2)} -- each followed by its value

if (redis.call('HGET', samples, 'minute') or '0') ~= underWay then return 0 end
redis.call('HSET', samples, unpack(fields))
return 1

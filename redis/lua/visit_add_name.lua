-- Enters a name of visits among those known.
--
-- KEYS[1]  rc:names   ARGV[1] name   ARGV[2] how many there may be
-- ARGV[3]  a name for which there always is room
-- reply    1, or 0 if there are too many
-- cost     O(1)

if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return 1 end
local names = redis.call('SCARD', KEYS[1]) - redis.call('SISMEMBER', KEYS[1], ARGV[3])
if ARGV[1] ~= ARGV[3] and names >= tonumber(ARGV[2]) then return 0 end
redis.call('SADD', KEYS[1], ARGV[1])
return 1

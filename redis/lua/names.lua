-- Enters a name of visits among those known.
--
-- KEYS[1]  rc:names   ARGV[1] name   ARGV[2] how many there may be
-- reply    1, or 0 if there are too many
-- cost     O(1)

if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return 1 end
if redis.call('SCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('SADD', KEYS[1], ARGV[1])
return 1

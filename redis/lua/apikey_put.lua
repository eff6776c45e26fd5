-- Stores an API key.
--
-- KEYS[1]  rc:keys   ARGV[1] hash of its text   ARGV[2] record
-- ARGV[3]  how many there may be
-- reply    1, or 0 if there are too many
-- cost     O(1)

if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1

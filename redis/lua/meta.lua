-- Notes how the data is laid out, once, and tells what was noted.
--
-- KEYS[1]  rc:meta   ARGV[1…] field, value, …
-- reply    the values that stand, in the order of the fields
-- cost     O(fields)

local out = {}
for i = 1, #ARGV, 2 do
  redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1])
  out[#out + 1] = redis.call('HGET', KEYS[1], ARGV[i])
end
return out

-- Notes how the data is laid out, once, and tells what was noted. If anything
-- that stands is another value, nothing is noted.
--
-- KEYS[1]  rc:meta   ARGV[1…] field, value, …
-- reply    the values that stand, or would, in the order of the fields
-- cost     O(fields)

local out, missing, agree = {}, {}, true
for i = 1, #ARGV, 2 do
  local stands = redis.call('HGET', KEYS[1], ARGV[i])
  if not stands then
    missing[#missing + 1] = ARGV[i]
    missing[#missing + 1] = ARGV[i + 1]
  end
  agree = agree and (not stands or stands == ARGV[i + 1])
  out[#out + 1] = stands or ARGV[i + 1]
end
if agree and #missing > 0 then redis.call('HSET', KEYS[1], unpack(missing)) end
return out

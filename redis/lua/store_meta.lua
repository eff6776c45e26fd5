-- Notes how the data is laid out, once, and tells what was noted. If a value that
-- stands is another one, nothing is noted.
--
-- returns  the values that stand, or would, in the order of the fields
-- costs    O(fields)

local meta = KEYS[1] -- rc:meta
local fields = ARGV -- field, value, …

local out, missing, agree = {}, {}, true
for i = 1, #fields, 2 do
  local stands = redis.call('HGET', meta, fields[i])
  if not stands then
    missing[#missing + 1] = fields[i]
    missing[#missing + 1] = fields[i + 1]
  end
  agree = agree and (not stands or stands == fields[i + 1])
  out[#out + 1] = stands or fields[i + 1]
end
if agree and #missing > 0 then redis.call('HSET', meta, unpack(missing)) end
return out

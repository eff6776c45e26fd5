-- Lets a pass to the console expire later.
--
-- returns  1, or 0 if there is none, or none any more
-- costs    O(1)

local passes = KEYS[1] -- rc:passes
local now = tonumber(ARGV[1]) -- ms
local hash = ARGV[2] -- of the pass's text
local expires = tonumber(ARGV[3]) -- ms

local record = redis.call('HGET', passes, hash)
if not record or string.sub(record, 1, 6) == 'taken ' then return 0 end
local pass = cjson.decode(record)
if pass.expires <= now then return 0 end
expires = math.min(expires, pass.ends)
if expires > pass.expires then
  -- Only this number changes: the text around it stays as it was written.
  local changed = string.gsub(record, '"expires":%d+,"ends":', string.format('"expires":%.0f,"ends":', expires))
  redis.call('HSET', passes, hash, changed)
end
return 1

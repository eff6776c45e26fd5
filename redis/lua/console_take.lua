-- Removes a pass to the console.
--
-- returns  the pass, or nothing if there is none, or none any more
-- costs    O(1)

local passes = KEYS[1] -- rc:passes
local now = tonumber(ARGV[1]) -- ms
local hash = ARGV[2] -- of the pass's text
local request = ARGV[3] -- names this request, whenever it comes

local record = redis.call('HGET', passes, hash)
if not record then return false end
if string.sub(record, 1, 6) == 'taken ' then
  -- The answer was lost, and the caller asks again.
  local taken = 'taken ' .. request .. '\n'
  if string.sub(record, 1, #taken) == taken then return string.sub(record, #taken + 1) end
  return false
end
if cjson.decode(record).expires <= now then return false end
redis.call('HSET', passes, hash, 'taken ' .. request .. '\n' .. record)
return record

-- Stores a webhook, if nobody has changed it meanwhile.
--
-- returns  done, known, full, missing or changed
-- costs    O(number of webhooks)

local hooks = KEYS[1] -- rc:hooks
local id, old, new, record = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local limit = tonumber(ARGV[5])
local request = ARGV[6] -- names this request, whenever it comes

local revision = redis.call('HGET', hooks, 'r:' .. id)
-- The answer was lost, and the caller asks again.
if redis.call('HGET', hooks, 'q:' .. id) == request then return 'done' end

if old == '0' then
  if revision then return 'known' end
  local count = 0
  for _, field in ipairs(redis.call('HKEYS', hooks)) do
    if string.sub(field, 1, 2) == 'w:' then count = count + 1 end
  end
  if count >= limit then return 'full' end
elseif not revision then
  return 'missing'
elseif revision ~= old then
  return 'changed'
end
redis.call('HSET', hooks, 'w:' .. id, record, 'r:' .. id, new, 'q:' .. id, request)
return 'done'

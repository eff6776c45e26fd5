-- Lists all webhooks.
--
-- returns  their records
-- costs    O(number of webhooks)

local hooks = KEYS[1] -- rc:hooks

local fields = {}
for _, field in ipairs(redis.call('HKEYS', hooks)) do
  if string.sub(field, 1, 2) == 'w:' then fields[#fields + 1] = field end
end
if #fields == 0 then return {} end
return redis.call('HMGET', hooks, unpack(fields))

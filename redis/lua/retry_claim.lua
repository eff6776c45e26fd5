-- Claims a retry key for a request.
--
-- KEYS[1]  rc:{p}:claim:<retry key>, a hash: until (ms), request, and a field
--          for each login that holds it
-- ARGV[1]  request   ARGV[2] nonce of the login
-- ARGV[3]  now, ms   ARGV[4] how long a claim lasts, ms
-- reply    1, or 0 if another request holds it
-- cost     O(1)

local most = 64 -- logins noted: all but the first few are retries of a success
local held = redis.call('HMGET', KEYS[1], 'until', 'request')
if held[1] and tonumber(ARGV[3]) < tonumber(held[1]) then
  if held[2] ~= ARGV[1] then return 0 end
  if redis.call('HLEN', KEYS[1]) < most then redis.call('HSET', KEYS[1], 'by:' .. ARGV[2], '') end
  return 1
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', ARGV[3] + ARGV[4]), 'request', ARGV[1], 'by:' .. ARGV[2], '')
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1

-- Claims a retry key for a request.
--
-- returns  1, or 0 if another request holds it
-- costs    O(1)

local claim = KEYS[1] -- rc:{p}:claim:<retry key>, a hash: until (ms), request, and a field for each login that holds it
local request, nonce = ARGV[1], ARGV[2] -- the nonce is the login's
local now, duration = ARGV[3], ARGV[4] -- ms

local most = 64 -- logins noted: all but the first few are retries of a success
local held = redis.call('HMGET', claim, 'until', 'request')
if held[1] and tonumber(now) < tonumber(held[1]) then
  if held[2] ~= request then return 0 end
  if redis.call('HLEN', claim) < most then redis.call('HSET', claim, 'by:' .. nonce, '') end
  return 1
end
redis.call('DEL', claim)
redis.call('HSET', claim, 'until', string.format('%.0f', now + duration), 'request', request, 'by:' .. nonce, '')
redis.call('PEXPIRE', claim, duration)
return 1

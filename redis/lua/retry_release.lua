-- Gives a login's hold on a retry key up. The key is free once nobody holds it.
--
-- returns  1
-- costs    O(1)

local claim = KEYS[1] -- rc:{p}:claim:<retry key>
local nonce = ARGV[1] -- of the login

redis.call('HDEL', claim, 'by:' .. nonce)
if redis.call('HLEN', claim) <= 2 then redis.call('DEL', claim) end
return 1

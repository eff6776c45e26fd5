-- Gives a login's hold on a retry key up. The key is free once nobody holds it.
--
-- KEYS[1]  rc:{p}:claim:<retry key>   ARGV[1] nonce of the login
-- reply    1
-- cost     O(1)

redis.call('HDEL', KEYS[1], 'by:' .. ARGV[1])
if redis.call('HLEN', KEYS[1]) <= 2 then redis.call('DEL', KEYS[1]) end
return 1

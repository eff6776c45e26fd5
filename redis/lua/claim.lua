-- Claims a retry key for a request.
--
-- KEYS[1]  rc:{p}:claim:<retry key>
-- ARGV[1]  request   ARGV[2] now, ms   ARGV[3] how long a claim lasts, ms
-- reply    1 if it is new, 2 if the same request holds it, 0 if another does
-- cost     O(1)

local held = redis.call('GET', KEYS[1])
if held and tonumber(ARGV[2]) < struct.unpack('>I8', held) then
  if string.sub(held, 9) == ARGV[1] then return 2 end
  return 0
end
redis.call('SET', KEYS[1], struct.pack('>I8', tonumber(ARGV[2]) + tonumber(ARGV[3])) .. ARGV[1], 'PX', ARGV[3])
return 1

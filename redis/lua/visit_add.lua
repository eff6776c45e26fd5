-- needs: env
-- Notes visitors of a name.
--
-- ARGV[2]   name        ARGV[3]  hour, s      ARGV[4]  its end, ms
-- ARGV[5]   1 if the name is entered among those of all partitions
-- ARGV[6…]  visitors
-- reply     1, or 0 and nothing changed if the name has to be entered first
-- cost      O(visitors)

local name, hour = ARGV[2], ARGV[3]
if ARGV[5] ~= '1' and call('HEXISTS', key('names'), name) == 0 then return done(0) end
local sketch = key('visits:' .. hour .. ':' .. name)
for i = 6, #ARGV, 1000 do call('PFADD', sketch, unpack(ARGV, i, math.min(#ARGV, i + 999))) end
if call('ZADD', key('hours'), ARGV[4], hour .. ':' .. name) == 1 then
  call('HINCRBY', key('names'), name, 1)
  call('HSET', key('newesthours'), name, math.max(tonumber(hour), tonumber(call('HGET', key('newesthours'), name) or 0)))
end
return done(1)

-- needs: env
-- Adds visitors of a name.
--
-- returns  1, or 0 and nothing is changed if the name has to be entered first
-- costs    O(visitors)

local name = ARGV[2]
local hour, hourEnd = ARGV[3], ARGV[4] -- s, ms
local isEntered = ARGV[5] == '1' -- the name stands among those of all partitions
local visitors = argumentsFrom(6)

if not isEntered and call('HEXISTS', key('names'), name) == 0 then return done(0) end
local sketch = key('visits:' .. hour .. ':' .. name)
for i = 1, #visitors, 1000 do call('PFADD', sketch, unpack(visitors, i, math.min(#visitors, i + 999))) end
if call('ZADD', key('hours'), hourEnd, hour .. ':' .. name) == 1 then
  call('HINCRBY', key('names'), name, 1)
  call('HSET', key('newesthours'), name, math.max(tonumber(hour), tonumber(call('HGET', key('newesthours'), name) or 0)))
end
return done(1)

-- needs: env days_index days
-- Has the maps of all users of a day archived again.
--
-- returns  how many there are
-- costs    O(users of the day), at native speed if it is a bitmap

local kind, day = ARGV[2], ARGV[3]

local field = kind .. ':' .. day
local users, month = dayKey(field), kind .. ':' .. monthOf(tonumber(day))
local dirty = key('dirty:' .. month)
local n = tonumber(call('HGET', key('days'), field) or 0)
if n == 0 then return done(0) end
advance()
if call('HEXISTS', key('dirtymonths'), month) == 0 then enterField(key('dirtymonths'), month) end

-- A bitmap is added by Redis itself; a set is one only while it is small.
if isBitmap(users) then
  if call('TYPE', dirty).ok == 'set' then toBitmap(dirty) end
  call('BITOP', 'OR', dirty, dirty, users)
  call('HSET', key('dirtymonths'), month, call('BITCOUNT', dirty))
  return done(n)
end
local members = call('SMEMBERS', users)
if isBitmap(dirty) then
  for _, m in ipairs(members) do call('SETBIT', dirty, m, 1) end
  call('HSET', key('dirtymonths'), month, call('BITCOUNT', dirty))
  return done(n)
end
for i = 1, #members, 1000 do call('SADD', dirty, unpack(members, i, math.min(#members, i + 999))) end
local all = call('SCARD', dirty)
call('HSET', key('dirtymonths'), month, all)
if dense(all, numbersGiven()) then toBitmap(dirty) end
return done(n)

-- needs: env days_index days
-- Has the maps of all users of a day archived again.
--
-- ARGV[2]  kind   ARGV[3] day
-- reply    how many there are
-- cost     O(users of the day), at native speed if it is a bitmap

local field = ARGV[2] .. ':' .. ARGV[3]
local day, month = dayKey(field), ARGV[2] .. ':' .. monthOf(tonumber(ARGV[3]))
local chg = key('dirty:' .. month)
local n = tonumber(call('HGET', key('days'), field) or 0)
if n == 0 then return done(0) end
advance()
if call('HEXISTS', key('dirtymonths'), month) == 0 then enterField(key('dirtymonths'), month) end
if isBitmap(day) then
  if call('TYPE', chg).ok == 'set' then toBitmap(chg) end
  call('BITOP', 'OR', chg, chg, day)
  call('HSET', key('dirtymonths'), month, call('BITCOUNT', chg))
  return done(n)
end
local members = call('SMEMBERS', day) -- a set is one only while it is small
if isBitmap(chg) then
  for _, m in ipairs(members) do call('SETBIT', chg, m, 1) end
  call('HSET', key('dirtymonths'), month, call('BITCOUNT', chg))
  return done(n)
end
for i = 1, #members, 1000 do call('SADD', chg, unpack(members, i, math.min(#members, i + 999))) end
local all = call('SCARD', chg)
call('HSET', key('dirtymonths'), month, all)
if dense(all, numbersGiven()) then toBitmap(chg) end
return done(n)

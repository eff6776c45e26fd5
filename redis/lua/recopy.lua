-- Has the maps of all users of a day archived again.
--
-- ARGV[2]  kind   ARGV[3] day
-- reply    how many there are
-- cost     O(users of the day), at native speed if it is a bitmap

local field = ARGV[2] .. ':' .. ARGV[3]
local day, month = dayKey(field), ARGV[2] .. ':' .. monthOf(tonumber(ARGV[3]))
local chg = key('chg:' .. month)
local n = tonumber(call('HGET', key('days'), field) or 0)
if n == 0 then return done(0) end
advance()
if isBitmap(day) then
  if call('TYPE', chg).ok == 'set' then
    local members = call('SMEMBERS', chg)
    call('DEL', chg)
    for _, m in ipairs(members) do call('SETBIT', chg, m, 1) end
  end
  call('BITOP', 'OR', chg, chg, day)
  call('HSET', key('changed'), month, call('BITCOUNT', chg))
else
  for _, m in ipairs(call('SMEMBERS', day)) do add(chg, key('changed'), month, m) end
end
return done(n)

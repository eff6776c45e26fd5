-- needs: env days_index days
-- Takes the marks of a day out, unless a map of one of its users has changed
-- since it was archived.
--
-- ARGV[2]  kind   ARGV[3] day   ARGV[4] its month
-- reply    how many there were, -1 if they stay
-- cost     O(users of the day), at native speed if both sets are bitmaps

local field = ARGV[2] .. ':' .. ARGV[3]
local day, chg = dayKey(field), key('dirty:' .. ARGV[2] .. ':' .. ARGV[4])
local n = tonumber(call('HGET', key('days'), field) or 0)
if n == 0 then return done(0) end
if call('EXISTS', chg) == 1 then
  if isBitmap(day) and isBitmap(chg) then
    local both = key('both')
    call('BITOP', 'AND', both, day, chg)
    local shared = call('BITCOUNT', both)
    call('DEL', both)
    if shared > 0 then return done(-1) end
  else
    local few, other = day, chg
    if isBitmap(day) then few, other = chg, day end
    for _, m in ipairs(call('SMEMBERS', few)) do
      if has(other, m) then return done(-1) end
    end
  end
end
advance()
if isBitmap(day) then
  call('BITOP', 'OR', key('hasarchived'), key('hasarchived'), day)
else
  for _, m in ipairs(call('SMEMBERS', day)) do call('SETBIT', key('hasarchived'), m, 1) end
end
call('DEL', day)
call('HDEL', key('days'), field)
leaveField(key('days'), field)
call('HSET', key('offloaded'), field, touchRecalls())
enterField(key('offloaded'), field)
return done(n)

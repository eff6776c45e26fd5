-- needs: env days_index days
-- Removes the marks of a day, unless a map of one of its users has changed since it
-- was archived.
--
-- returns  how many there were, -1 if they stay
-- costs    O(users of the day), at native speed if both sets are bitmaps

local kind, day, month = ARGV[2], ARGV[3], ARGV[4]

local field = kind .. ':' .. day
local users, dirty = dayKey(field), key('dirty:' .. kind .. ':' .. month)
local n = tonumber(call('HGET', key('days'), field) or 0)
if n == 0 then return done(0) end

-- Is any user of the day dirty?
if call('EXISTS', dirty) == 1 then
  if isBitmap(users) and isBitmap(dirty) then
    local both = key('both')
    call('BITOP', 'AND', both, users, dirty)
    local shared = call('BITCOUNT', both)
    call('DEL', both)
    if shared > 0 then return done(-1) end
  else
    local few, other = users, dirty
    if isBitmap(users) then few, other = dirty, users end
    for _, m in ipairs(call('SMEMBERS', few)) do
      if contains(other, m) then return done(-1) end
    end
  end
end

-- Note who has marks in the archive, before the marks go.
advance()
if isBitmap(users) then
  call('BITOP', 'OR', key('hasarchived'), key('hasarchived'), users)
else
  for _, m in ipairs(call('SMEMBERS', users)) do call('SETBIT', key('hasarchived'), m, 1) end
end
call('DEL', users)
call('HDEL', key('days'), field)
leaveField(key('days'), field)

-- From here on the archive is asked for this day.
call('HSET', key('offloaded'), field, noteArchiveChange())
enterField(key('offloaded'), field)
return done(n)

-- needs: env days_index days
-- Adds marks of offloaded days again. That is no change: the archive has them.
--
-- returns  1
-- costs    O(1) for each

local marks = argumentsFrom(2) -- user, kind, day, …

advance()
for i = 1, #marks, 3 do
  local kind, day = marks[i + 1], marks[i + 2]
  local n, field = numberFor(marks[i]), kind .. ':' .. day
  if addTo(dayKey(field), key('days'), field, n) then
    lowerFirstDay(kind, n, tonumber(day))
    lowerFirstDay('', n, tonumber(day))
    if not isOffloaded(field) then -- figures did not count it
      invalidateFigures(kind, tonumber(day))
      noteMarkChange()
    end
  end
end
return done(1)

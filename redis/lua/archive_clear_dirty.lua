-- needs: env days_index days days_release
-- Marks maps of a month as archived, if they have not changed since.
--
-- returns  how many have changed, or are to be archived again
-- costs    O(days) for each

local kind, month = ARGV[2], ARGV[3]
local monthStart, days = tonumber(ARGV[4]), tonumber(ARGV[5]) -- its first day, and how many it has
local maps = argumentsFrom(6) -- user, map, …

local field, changed = kind .. ':' .. month, 0
local sets = daySetsOf(kind, monthStart, days)
for i = 1, #maps, 2 do
  local n = call('HGET', key('num'), maps[i])
  if n then -- else the user was erased
    n = tonumber(n)
    if monthMapOf(n, sets) == tonumber(maps[i + 1]) then
      removeFrom(key('dirty:' .. field), key('dirtymonths'), field, n)
      noteIfMarkless(n)
    else
      changed = changed + 1
    end
  end
end
releaseNumbers(100)
return done(changed)

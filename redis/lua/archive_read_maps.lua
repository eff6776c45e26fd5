-- needs: env days_index days
-- Reads the maps of a month, as they are now, of users whose map changed since it
-- was archived.
--
-- returns  user, map, … of those that still are to be archived
-- costs    O(days) for each

local kind, month = ARGV[2], ARGV[3]
local monthStart, days = tonumber(ARGV[4]), tonumber(ARGV[5]) -- its first day, and how many it has
local numbersAsked = argumentsFrom(6)

local dirty, out = key('dirty:' .. kind .. ':' .. month), {}
local sets = daySetsOf(kind, monthStart, days)
for _, text in ipairs(numbersAsked) do
  local n = tonumber(text)
  local user = call('HGET', key('ids:' .. math.floor(n / 64)), n)
  if user and contains(dirty, n) then
    out[#out + 1] = user
    out[#out + 1] = num(monthMapOf(n, sets))
  end
end
return done(out)

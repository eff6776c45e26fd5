-- The maps of a month that changed since they were archived.
--
-- ARGV[2]  kind:month   ARGV[3] kind   ARGV[4] first day   ARGV[5] days
-- reply    {set of the numbers that changed, day, set, …}: sets as in days.lua
-- cost     O(size of the sets)

local out = {packed(key('chg:' .. ARGV[2]))}
for d = 0, ARGV[5] - 1 do
  local day = ARGV[4] + d
  local set = packed(key('day:' .. ARGV[3] .. ':' .. day))
  if set ~= '' then
    out[#out + 1] = day
    out[#out + 1] = set
  end
end
return done(out)

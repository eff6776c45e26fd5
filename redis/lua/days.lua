-- The sets of users of days.
--
-- ARGV[2]  kind, '' for all   ARGV[3] first day   ARGV[4] last day
-- reply    {marks so far, partition's time, day, set, …} in no order, a day once
--          for each kind: sets as in set.lua
-- cost     O(days with marks + size of the sets)

local kind, from, to = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local out = {tonumber(call('HGET', part, 'marks') or 0), num(clock)}
for _, field in ipairs(call('HKEYS', key('days'))) do
  local k, d = string.match(field, '^(.*):(%-?%d+)$')
  d = tonumber(d)
  if (kind == '' or k == kind) and d >= from and d <= to then
    out[#out + 1] = d
    out[#out + 1] = packed(key('day:' .. field))
  end
end
return done(out)

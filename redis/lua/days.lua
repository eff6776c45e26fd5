-- The sets of users of days.
--
-- ARGV[2]  kind, '' for all   ARGV[3] first day   ARGV[4] last day
-- reply    {marks so far, recalls so far, {kind:day, stamp, … of those days that
--          left}, day, set, …} in no order, a day once for each kind: sets as in
--          set.lua
-- cost     O(days with marks + size of the sets)

local kind, from, to = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local function asked(field)
  local k, d = string.match(field, '^(.*):(%-?%d+)$')
  d = tonumber(d)
  return (kind == '' or k == kind) and d >= from and d <= to and d
end
local counts, gone = call('HMGET', part, 'marks', 'recalls'), {}
local all = call('HGETALL', key('gone'))
for i = 1, #all, 2 do
  if asked(all[i]) then
    gone[#gone + 1] = all[i]
    gone[#gone + 1] = all[i + 1]
  end
end
local out = {tonumber(counts[1] or 0), tonumber(counts[2] or 0), gone}
for _, field in ipairs(call('HKEYS', key('days'))) do
  local d = asked(field)
  if d then
    out[#out + 1] = d
    out[#out + 1] = packed(key('day:' .. field))
  end
end
return done(out)

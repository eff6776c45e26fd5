-- The days on which a user was there.
--
-- ARGV[2]  user   ARGV[3] kind, '' for all   ARGV[4] first day   ARGV[5] last
-- reply    {day, …}, some of them more than once if there are several kinds
-- cost     O(days with marks)

local n = call('HGET', key('num'), ARGV[2])
if not n then return done({}) end
local kind, from, to, out = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), {}
for _, field in ipairs(call('HKEYS', key('days'))) do
  local k, d = fieldOf(field)
  if (kind == '' or k == kind) and d >= from and d <= to and has(dayKey(field), tonumber(n)) then
    out[#out + 1] = d
  end
end
return done(out)

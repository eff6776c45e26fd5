-- needs: env days_index days
-- The days on which a user was there.
--
-- ARGV[2]  user   ARGV[3] kind, '' for all   ARGV[4] first day   ARGV[5] last
-- ARGV[6]  about how many days are looked at at most
-- reply    {the day to go on at, '' at the end; kind and day of each}
-- cost     O(days looked at)

local n = call('HGET', key('num'), ARGV[2])
if not n then return done({''}) end
local fields, on = someFields(key('days'), ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6]))
local out = {on and num(on) or ''}
for _, f in ipairs(fields) do
  if has(dayKey(f[1] .. ':' .. f[2]), tonumber(n)) then
    out[#out + 1] = f[1]
    out[#out + 1] = num(f[2])
  end
end
return done(out)

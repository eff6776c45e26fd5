-- needs: env days_index days
-- Lists the days with a mark of a user.
--
-- returns  {the day to go on at, '' at the end; kind and day of each}
-- costs    O(days looked at)

local user = ARGV[2]
local kind = ARGV[3] -- '' for all
local first, last = ARGV[4], ARGV[5]
local most = tonumber(ARGV[6]) -- days to look at, about

local n = call('HGET', key('num'), user)
if not n then return done({''}) end
local fields, on = someFields(key('days'), kind, first, last, most)
local out = {on and num(on) or ''}
for _, f in ipairs(fields) do
  if contains(dayKey(f[1] .. ':' .. f[2]), tonumber(n)) then
    out[#out + 1] = f[1]
    out[#out + 1] = num(f[2])
  end
end
return done(out)

-- needs: env days_index days
-- The maps of users of a month that changed since they were archived, as they are
-- now.
--
-- ARGV[2]  kind   ARGV[3] month   ARGV[4] its first day   ARGV[5] its days
-- ARGV[6…] numbers
-- reply    user, map, … of those that still are to be archived
-- cost     O(days) for each

local chg, out = key('dirty:' .. ARGV[2] .. ':' .. ARGV[3]), {}
local sets = setsOf(ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5]))
for i = 6, #ARGV do
  local n = tonumber(ARGV[i])
  local user = call('HGET', key('ids:' .. math.floor(n / 64)), n)
  if user and has(chg, n) then
    out[#out + 1] = user
    out[#out + 1] = num(mapOf(n, sets))
  end
end
return done(out)

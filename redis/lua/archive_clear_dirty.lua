-- needs: env days_index days
-- Notes that maps of a month have been archived, if they are still as they were.
--
-- ARGV[2]  kind   ARGV[3] month   ARGV[4] its first day   ARGV[5] its days
-- ARGV[6…] user, map, …
-- reply    how many were not
-- cost     O(days) for each

local month, left = ARGV[2] .. ':' .. ARGV[3], 0
local sets = setsOf(ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5]))
for i = 6, #ARGV, 2 do
  local n = call('HGET', key('num'), ARGV[i])
  if n then -- else they were erased
    n = tonumber(n)
    if mapOf(n, sets) == tonumber(ARGV[i + 1]) then
      take(key('dirty:' .. month), key('dirtymonths'), month, n)
      offer(n)
    else
      left = left + 1
    end
  end
end
tidyNumbers(100)
return done(left)

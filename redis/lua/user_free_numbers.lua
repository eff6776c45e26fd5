-- needs: env days_index days days_release
-- Goes on with releasing numbers: see days.lua.
--
-- returns  1 if there is more to do, else 0
-- costs    O(days looked at)

local budget = tonumber(ARGV[2]) -- days and months to look at, about

return done(releaseNumbers(budget) and 1 or 0)

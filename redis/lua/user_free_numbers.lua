-- needs: env days_index days
-- Goes on with giving numbers back.
--
-- ARGV[2]  how many days and months are looked at at most, about
-- reply    1 if there is more to do, else 0
-- cost     O(days looked at)

return done(tidyNumbers(tonumber(ARGV[2])) and 1 or 0)

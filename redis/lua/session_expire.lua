-- needs: env bytes event presence session_large session session_visibility session_cutoff
-- Ends a part of the sessions that are past their deadline.
--
-- ARGV[2]  how many at most
-- reply    1 if there may be more, else 0
-- cost     O(log n) for each

advance()
local budget = tonumber(ARGV[2])
return done(drainDue(budget) >= budget and 1 or 0)

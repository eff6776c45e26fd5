-- needs: env bytes invisible event presence session_large session_read session due session_due session_visibility session_cutoff
-- Ends a part of the sessions that are past their deadline.
--
-- returns  1 if there may be more, else 0
-- costs    O(log n) for each

local budget = tonumber(ARGV[2]) -- sessions to end

advance()
return done(drainAll(budget) >= budget and 1 or 0)

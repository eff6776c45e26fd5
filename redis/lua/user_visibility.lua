-- needs: env bytes event session_large session session_visibility
-- Has sessions follow a user who turned invisible, or visible again.
--
-- ARGV[2]  user   ARGV[3] how many sessions at most
-- reply    1 if some are left, else 0
-- cost     O(log n) for each session

if not call('ZSCORE', key('visibility'), ARGV[2]) then return done(0) end
return done(veilSome(ARGV[2], tonumber(ARGV[3])) and 1 or 0)

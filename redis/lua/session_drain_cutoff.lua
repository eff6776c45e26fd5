-- needs: env bytes event presence session_large session session_visibility session_cutoff
-- Writes a part of the ends that have been noted as cutoffs.
--
-- ARGV[2]  how many sessions are looked at at most
-- ARGV[3]  id of the request that made the cutoffs, '' to ask about a user
-- ARGV[4]  that user
-- reply    {how many users are left, how many sessions ended, ids of the first
--          of them, packed}; of a user the first alone counts
-- cost     O(log n) for each session

advance()
local id, user = ARGV[3], ARGV[4]
if id == '' then
  if cutoffs > 0 and #readCutoff(user) > 0 then writeCutoff(user, tonumber(ARGV[2])) end
  return done({cutoffs > 0 and #readCutoff(user) > 0 and 1 or 0, 0, ''})
end
drainCutoffs(tonumber(ARGV[2]))
return done({tally(id, 0, {})})

-- needs: env bytes invisible event presence session_large session_read session due session_due session_visibility session_cutoff
-- Writes a part of the ends that have been noted as cutoffs.
--
-- returns  {how many users are left, how many sessions ended, ids of the first of
--          them, packed}; if asked about a user, only the first counts
-- costs    O(log n) for each session

local most = tonumber(ARGV[2]) -- sessions to look at
local id = ARGV[3] -- of the request that made the cutoffs, '' to ask about a user
local user = ARGV[4]

advance()
if id == '' then
  if cutoffs > 0 and #readCutoff(user) > 0 then writeCutoff(user, most) end
  return done({cutoffs > 0 and #readCutoff(user) > 0 and 1 or 0, 0, ''})
end
drainCutoffs(most)
return done({tally(id, 0, {})})

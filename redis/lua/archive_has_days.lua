-- needs: env days_index days
-- Asks whether the archive may have marks of a user.
--
-- returns  1 if all marks are here, 0 if some may be in the archive
-- costs    O(kinds)

local user = ARGV[2]
local kind = ARGV[3] -- '' for all
local first, last = ARGV[4], ARGV[5] -- days

local n = call('HGET', key('num'), user)
if not n or not hasArchivedMarks(n) then return done(1) end
return done(#someFields(key('offloaded'), kind, first, last, 1) > 0 and 0 or 1)

-- needs: env days_index days
-- Asks whether the archive may have marks of a user.
--
-- returns  1 if it may have some, 0 if all marks are here
-- costs    O(kinds)

local user = ARGV[2]
local kind = ARGV[3] -- '' for all
local first, last = ARGV[4], ARGV[5] -- days

local n = call('HGET', key('num'), user)
if not n or not hasArchivedMarks(n) then return done(0) end
return done(#someFields(key('offloaded'), kind, first, last, 1) > 0 and 1 or 0)

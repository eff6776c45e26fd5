-- needs: env days_index days
-- Whether all marks of a user are here.
--
-- ARGV[2]  user   ARGV[3] kind, '' for all   ARGV[4] first day   ARGV[5] last
-- reply    1, or 0 if some may be in the archive
-- cost     O(kinds)

local n = call('HGET', key('num'), ARGV[2])
if not n or not isAway(n) then return done(1) end
return done(#someFields(key('offloaded'), ARGV[3], ARGV[4], ARGV[5], 1) > 0 and 0 or 1)

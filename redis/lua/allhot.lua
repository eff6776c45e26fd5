-- Whether all marks of a user are here.
--
-- ARGV[2]  user
-- reply    1, or 0 if some may be in the archive
-- cost     O(1)

local n = call('HGET', key('num'), ARGV[2])
return done((n and isAway(n)) and 0 or 1)

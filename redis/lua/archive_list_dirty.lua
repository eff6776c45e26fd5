-- needs: env days_set
-- Lists the numbers whose maps of a month changed since they were archived.
--
-- returns  the set, as in days_set.lua
-- costs    O(size of the set)

local field = ARGV[2] -- kind:month

return done(packedSet(key('dirty:' .. field)))

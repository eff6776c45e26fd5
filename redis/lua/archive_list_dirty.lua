-- needs: env days_set
-- The numbers whose maps of a month changed since they were archived.
--
-- ARGV[2]  kind:month
-- reply    the set, as in days_set.lua
-- cost     O(size of the set)

return done(packed(key('dirty:' .. ARGV[2])))

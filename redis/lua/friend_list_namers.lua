-- needs: env user_erasure
-- Names some of those who name a user as friend, while the user is being erased.
--
-- ARGV[2]  user   ARGV[3]  id of the erasure   ARGV[4]  how many at most
-- reply    names; none if there are none, or the user is gone already
-- cost     O(log n) for each

if not stillErasing(ARGV[2], ARGV[3]) then return done({}) end
return done(call('ZRANGE', key('r:' .. ARGV[2]), 0, ARGV[4] - 1))

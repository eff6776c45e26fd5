-- needs: env user_erasure
-- Lists some of the users who have a user among their friends, while that one is
-- being erased.
--
-- returns  names; none if there are none, or the user is removed already
-- costs    O(log n) for each

local user = ARGV[2]
local id = ARGV[3] -- of the erasure
local most = tonumber(ARGV[4])

if not stillErasing(user, id) then return done({}) end
return done(call('ZRANGE', key('r:' .. user), 0, most - 1))

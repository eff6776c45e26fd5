-- needs: env
-- Writes a part of a new list of friends beside the one that stands.
--
-- returns  1
-- costs    O(log n) for each

local name = ARGV[2] -- of the new list
local friends = argumentsFrom(3) -- since (ms), friend, …

call('ZADD', key('stage:' .. name), unpack(friends))
call('PEXPIRE', key('stage:' .. name), 600000)
return done(1)

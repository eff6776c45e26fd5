-- needs: env
-- Writes a part of a new list of friends beside the one that stands.
--
-- ARGV[2]  name of the new list
-- ARGV[3…] since (ms), friend, …
-- reply    1
-- cost     O(log n) for each

call('ZADD', key('stage:' .. ARGV[2]), unpack(ARGV, 3))
call('PEXPIRE', key('stage:' .. ARGV[2]), 600000)
return done(1)

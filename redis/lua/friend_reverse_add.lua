-- needs: env
-- Writes reverse edges.
--
-- ARGV[2…]  friend, who names them, stamp, …
-- reply     1
-- cost      O(log n) for each

for i = 2, #ARGV, 3 do call('ZADD', key('r:' .. ARGV[i]), 'GT', ARGV[i + 2], ARGV[i + 1]) end
return done(1)

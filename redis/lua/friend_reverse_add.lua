-- needs: env
-- Writes reverse edges.
--
-- returns  1
-- costs    O(log n) for each

local edges = argumentsFrom(2) -- friend, the user who names them, stamp, …

for i = 1, #edges, 3 do call('ZADD', key('r:' .. edges[i]), 'GT', edges[i + 2], edges[i + 1]) end
return done(1)

-- needs: env
-- Removes reverse edges, unless they were written again since they were given up.
--
-- returns  1
-- costs    O(log n) for each

local edges = argumentsFrom(2) -- friend, the user who named them, stamp of the step that gave it up, …

for i = 1, #edges, 3 do
  local written = call('ZSCORE', key('r:' .. edges[i]), edges[i + 1])
  if written and tonumber(written) < tonumber(edges[i + 2]) then call('ZREM', key('r:' .. edges[i]), edges[i + 1]) end
end
return done(1)

-- needs: env days_index
-- Forgets that days were offloaded: they have been restored, all of each.
--
-- returns  how many are forgotten; not those that were offloaded again since
-- costs    O(1) for each

local days = argumentsFrom(2) -- kind:day, the stamp of its offloading, …

local n = 0
for i = 1, #days, 2 do
  if call('HGET', key('offloaded'), days[i]) == days[i + 1] then
    n = n + call('HDEL', key('offloaded'), days[i])
    leaveField(key('offloaded'), days[i])
  end
end
return done(n)

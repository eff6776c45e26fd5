-- needs: env days_index
-- Forgets that days left, which are back whole.
--
-- ARGV[2…]  kind:day, the stamp of its departure, …
-- reply     how many are forgotten: not those that have left again
-- cost      O(1) for each

local n = 0
for i = 2, #ARGV, 2 do
  if call('HGET', key('offloaded'), ARGV[i]) == ARGV[i + 1] then
    n = n + call('HDEL', key('offloaded'), ARGV[i])
    leaveField(key('offloaded'), ARGV[i])
  end
end
return done(n)

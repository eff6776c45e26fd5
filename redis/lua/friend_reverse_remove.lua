-- needs: env
-- Removes reverse edges that nobody has written anew since they were given up.
--
-- ARGV[2…]  friend, who named them, stamp of the step that gave it up, …
-- reply     1
-- cost      O(log n) for each

for i = 2, #ARGV, 3 do
  local stamp = call('ZSCORE', key('r:' .. ARGV[i]), ARGV[i + 1])
  if stamp and tonumber(stamp) < tonumber(ARGV[i + 2]) then call('ZREM', key('r:' .. ARGV[i]), ARGV[i + 1]) end
end
return done(1)

-- Sets first days that are earlier than those that stand.
--
-- ARGV[2…]  user, kind or '' for all, day, …
-- reply     1
-- cost      O(1) for each

for i = 2, #ARGV, 3 do
  local n = call('HGET', key('num'), ARGV[i])
  if n then notLaterThan(ARGV[i + 1], tonumber(n), tonumber(ARGV[i + 2])) end
end
return done(1)

-- Adds marks.
--
-- ARGV[2]   1 if the default kind is known to all
-- ARGV[3…]  user, kind or '' for the user's own, day, …
-- reply     {how many were new, how many stood already}, or {} and nothing
--           changed if the default kind is needed and not known
-- cost      O(1) for each

local marks, already, kinds = 0, 0, {}
for i = 3, #ARGV, 3 do
  kinds[i] = ARGV[i + 1]
  if kinds[i] == '' then kinds[i] = call('HGET', key('user:' .. ARGV[i]), 'kind') or 'user' end
  if kinds[i] == 'user' and ARGV[2] ~= '1' then return done({}) end
end
advance()
for i = 3, #ARGV, 3 do
  if mark(number(ARGV[i]), kinds[i], ARGV[i + 2]) then marks = marks + 1 else already = already + 1 end
end
return done({marks, already})

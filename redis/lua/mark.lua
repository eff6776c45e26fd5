-- Adds marks.
--
-- ARGV[2…]  user, kind or '' for the user's own, day, …
-- reply     {how many were new, how many stood already}
-- cost      O(1) for each

local marks, already = 0, 0
advance()
for i = 2, #ARGV, 3 do
  local kind = ARGV[i + 1]
  if kind == '' then kind = call('HGET', key('user:' .. ARGV[i]), 'kind') or 'user' end
  if mark(number(ARGV[i]), kind, ARGV[i + 2]) then marks = marks + 1 else already = already + 1 end
end
return done({marks, already})

-- needs: env friend_edge
-- Puts a new list of friends in the place of the one that stands.
--
-- ARGV[2]  user   ARGV[3]  name of the new list   ARGV[4]  how many it has
-- ARGV[5]  stamp of the last change of the list that it was made from
-- ARGV[6]  stamp of the reverse edges
-- reply    {'ok'}, or {'again'} and nothing changed if the list is another one, or
--          reverse edges of the user were given up meanwhile
-- cost     O(log n)

local user, mine, new = ARGV[2], key('f:' .. ARGV[2]), key('stage:' .. ARGV[3])
local size = call('ZCARD', new)
if size ~= tonumber(ARGV[4]) or num(stampOf(user, LAST)) ~= ARGV[5] or stampOf(user, FENCE) >= tonumber(ARGV[6]) then
  call('UNLINK', new)
  return done({'again'})
end
advance()
local difference = size - call('ZCARD', mine)
call('UNLINK', mine) -- which frees a long list elsewhere; RENAME would do it here
if size > 0 then
  call('RENAME', new, mine)
  call('PERSIST', mine)
end
if difference ~= 0 then call('HINCRBY', part, 'edges', difference) end
stampNow(user, fresh(), true)
return done({'ok'})

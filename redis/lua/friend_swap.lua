-- needs: env friend_edge
-- Puts a new list of friends in the place of the one that stands.
--
-- returns  {'ok'}; or {'again'} and nothing is changed, if the list is another one or
--          reverse edges of the user were given up meanwhile
-- costs    O(log n)

local user = ARGV[2]
local name = ARGV[3] -- of the new list
local expected = tonumber(ARGV[4]) -- how many friends it has
local listStamp = ARGV[5] -- of the last change of the list that it was made from
local edgeStamp = tonumber(ARGV[6]) -- of the reverse edges

local mine, new = key('f:' .. user), key('stage:' .. name)
local size = call('ZCARD', new)
if size ~= expected or num(stampOf(user, LAST)) ~= listStamp or stampOf(user, FENCE) >= edgeStamp then
  call('UNLINK', new)
  return done({'again'})
end
advance()
local difference = size - call('ZCARD', mine)
call('UNLINK', mine) -- which frees a long list in the background; RENAME would do it here
if size > 0 then
  call('RENAME', new, mine)
  call('PERSIST', mine)
end
if difference ~= 0 then call('HINCRBY', part, 'edges', difference) end
setStamps(user, newStamp(), true)
return done({'ok'})

-- needs: env friend_edge
-- Adds friends of a user whose reverse edges have been written.
--
-- ARGV[2]   user
-- ARGV[3]   stamp of the reverse edges, '' if none had to be written
-- ARGV[4]   how many friends a user may have
-- ARGV[5…]  friend, since (ms) or '' to keep what stands and else take now, …
-- reply     {'ok'}, or nothing changed and {'limit', n}, or {'again'} if reverse
--           edges of the user were given up meanwhile
-- cost      O(log n) for each

local user, mine = ARGV[2], key('f:' .. ARGV[2])
if ARGV[3] ~= '' and stampOf(user, FENCE) >= tonumber(ARGV[3]) then return done({'again'}) end
local names, given, taken = {}, {}, {}
for i = 5, #ARGV, 2 do
  names[#names + 1] = ARGV[i]
  local into, since = given, ARGV[i + 1]
  if since == '' then into, since = taken, num(at) end
  into[#into + 1] = since
  into[#into + 1] = ARGV[i]
end
local before, new = call('ZCARD', mine), 0
for _, since in ipairs(call('ZMSCORE', mine, unpack(names))) do
  if not since then new = new + 1 end
end
if new > 0 and ARGV[3] == '' then return done({'again'}) end
if before + new > tonumber(ARGV[4]) then return done({'limit', before + new}) end
advance()
if #given > 0 then call('ZADD', mine, unpack(given)) end
if #taken > 0 then call('ZADD', mine, 'NX', unpack(taken)) end
if new > 0 then call('HINCRBY', part, 'edges', new) end
call('ZREM', key('x:' .. user), unpack(names))
stampNow(user, fresh(), false)
return done({'ok'})

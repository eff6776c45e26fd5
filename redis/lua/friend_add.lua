-- needs: env friend_edge
-- Adds friends to the list of a user. Their reverse edges have been written.
--
-- returns  {'ok'}; or nothing is changed: {'limit', n}, or {'again'} if reverse edges
--          of the user were given up meanwhile
-- costs    O(log n) for each

local user = ARGV[2]
local stamp = ARGV[3] -- of the reverse edges, '' if none had to be written
local limit = tonumber(ARGV[4])
local friends = argumentsFrom(5) -- friend, since (ms) or '' to keep the old time or else take now, …

local mine = key('f:' .. user)
if stamp ~= '' and stampOf(user, FENCE) >= tonumber(stamp) then return done({'again'}) end

-- Those with a time of their own, and those without: since, friend, …
local names, dated, undated = {}, {}, {}
for i = 1, #friends, 2 do
  names[#names + 1] = friends[i]
  local into, since = dated, friends[i + 1]
  if since == '' then into, since = undated, num(at) end
  into[#into + 1] = since
  into[#into + 1] = friends[i]
end

-- Refuse before anything is written.
local before, new = call('ZCARD', mine), 0
for _, since in ipairs(call('ZMSCORE', mine, unpack(names))) do
  if not since then new = new + 1 end
end
if new > 0 and stamp == '' then return done({'again'}) end
if before + new > limit then return done({'limit', before + new}) end

advance()
if #dated > 0 then call('ZADD', mine, unpack(dated)) end
if #undated > 0 then call('ZADD', mine, 'NX', unpack(undated)) end
if new > 0 then call('HINCRBY', part, 'edges', new) end
call('ZREM', key('x:' .. user), unpack(names))
setStamps(user, newStamp(), false)
return done({'ok'})

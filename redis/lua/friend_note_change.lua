-- needs: env friend_edge
-- Notes reverse edges that are about to be written, or to lose their edge.
--
-- returns  {'note', stamp, those that were noted…}, or {'limit', how many friends
--          there would be}
-- costs    O(log n) for each

local user = ARGV[2]
local stamp = ARGV[3] -- what an earlier call returned, '' for a new one
local limit = ARGV[4] -- how many friends a user may have; '' for any number, and to note those too that are friends already
local friends = argumentsFrom(5) -- each once

local new = friends
if limit ~= '' then
  new = {}
  for i, since in ipairs(call('ZMSCORE', key('f:' .. user), unpack(friends))) do
    if not since then new[#new + 1] = friends[i] end
  end
  local total = call('ZCARD', key('f:' .. user)) + #new
  if total > tonumber(limit) then return done({'limit', total}) end
end
if stamp == '' then stamp = newStamp() end
noteLeftovers(user, stamp, new)
return done({'note', stamp, unpack(new)})

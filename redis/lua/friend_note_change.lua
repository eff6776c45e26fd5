-- needs: env friend_edge
-- Notes that reverse edges are about to be written, or to be left behind.
--
-- ARGV[2]  user
-- ARGV[3]  the stamp that an earlier call gave, '' for a new one
-- ARGV[4]  how many friends a user may have, '' to note those too that are
--          friends already, and any number
-- ARGV[5…] friends, each once
-- reply    {'note', stamp, those that were noted…} or {'limit', how many there
--          would be}
-- cost     O(log n) for each

local user, stamp, new = ARGV[2], ARGV[3], {unpack(ARGV, 5)}
if ARGV[4] ~= '' then
  new = {}
  for i, since in ipairs(call('ZMSCORE', key('f:' .. user), unpack(ARGV, 5))) do
    if not since then new[#new + 1] = ARGV[4 + i] end
  end
  local total = call('ZCARD', key('f:' .. user)) + #new
  if total > tonumber(ARGV[4]) then return done({'limit', total}) end
end
if stamp == '' then stamp = fresh() end
loosen(user, stamp, new)
return done({'note', stamp, unpack(new)})

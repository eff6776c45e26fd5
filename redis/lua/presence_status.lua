-- needs: env
-- The presence of users, as a viewer is shown it.
--
-- ARGV[2]   window (s)      ARGV[3]  retention of last-seen times (s)
-- ARGV[4]   1 if invisible users look offline
-- ARGV[5…]  users
-- reply     {for each, in order, the last-seen time, negative if gone, nil if none;
--           the first second that is online; the first that is kept}
-- cost      O(1) for each

local scores = call('ZMSCORE', key('seen'), unpack(ARGV, 5))
if ARGV[4] == '1' then
  for i, hidden in ipairs(call('ZMSCORE', key('hidden'), unpack(ARGV, 5))) do
    if hidden then
      local frozen = call('HGET', key('user:' .. ARGV[4 + i]), 'frozen')
      scores[i] = frozen and '-' .. frozen
    end
  end
end
local users = #ARGV - 4
scores[users + 1] = since(tonumber(ARGV[2]))
scores[users + 2] = math.max(1, math.floor(at / 1000) - tonumber(ARGV[3]))
return done(scores)

-- needs: env
-- Reads the presence of users, as a viewer is shown it.
--
-- returns  {for each, in order, the last-seen time, negative if they logged out, nil
--          if none; the first second that is online; the first that is kept}
-- costs    O(1) for each

local window = tonumber(ARGV[2]) -- s
local retention = tonumber(ARGV[3]) -- of last-seen times, s
local public = ARGV[4] == '1' -- shows invisible users as offline
local users = argumentsFrom(5)

local scores = call('ZMSCORE', key('seen'), unpack(users))
if public then
  for i, hidden in ipairs(call('ZMSCORE', key('hidden'), unpack(users))) do
    if hidden then
      local frozen = call('HGET', key('user:' .. users[i]), 'frozen')
      scores[i] = frozen and '-' .. frozen
    end
  end
end
scores[#users + 1] = onlineSince(window)
scores[#users + 2] = math.max(1, math.floor(at / 1000) - retention)
return done(scores)

-- The presence of users, as a viewer is shown it.
--
-- ARGV[2]   window (s)      ARGV[3]  retention of last-seen times (s)
-- ARGV[4]   1 if invisible users look offline
-- ARGV[5…]  users
-- reply     for each, in order: online, last seen or 0
-- cost      O(1) for each

local line, kept = since(tonumber(ARGV[2])), math.max(1, math.floor(at / 1000) - tonumber(ARGV[3]))
local users = {unpack(ARGV, 5)}
local scores = call('ZMSCORE', key('seen'), unpack(users))
local hidden = ARGV[4] == '1' and call('SMISMEMBER', key('hidden'), unpack(users)) or {}
local out = {}
for i, user in ipairs(users) do
  local score = tonumber(scores[i] or 0)
  local last, online = math.abs(score), score >= line and 1 or 0
  if hidden[i] == 1 then
    last, online = tonumber(call('HGET', key('user:' .. user), 'frozen') or 0), 0
  end
  if last < kept then last, online = 0, 0 end
  out[2 * i - 1], out[2 * i] = online, last
end
return done(out)

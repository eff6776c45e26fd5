-- The presence of users, as a viewer is shown it.
--
-- ARGV[2]   window (s)      ARGV[3]  retention of last-seen times (s)
-- ARGV[4]   1 if invisible users look offline
-- ARGV[5]   1 if live sessions are counted
-- ARGV[6…]  users
-- reply     for each, in order: {online, last seen or 0, sessions}
-- cost      O(1) for each, and for each of their sessions if counted

local line, sec = since(tonumber(ARGV[2])), math.floor(at / 1000)
local kept = math.max(1, sec - tonumber(ARGV[3]))
local public, sessions = ARGV[4] == '1', ARGV[5] == '1'
local users = {}
for i = 6, #ARGV do users[i - 5] = ARGV[i] end
local scores = call('ZMSCORE', key('seen'), unpack(users))
local hidden = public and call('SMISMEMBER', key('hidden'), unpack(users)) or {}

local function count(user)
  local n = 0
  for _, sid in ipairs(call('ZRANGE', key('u:' .. user), 0, -1)) do
    local s = load(sid)
    if s and at < deadline(s) then n = n + 1 end
  end
  return n
end

local out = {}
for i, user in ipairs(users) do
  local score = tonumber(scores[i] or 0)
  local last, online, n = math.abs(score), score >= line and 1 or 0, 0
  if hidden[i] == 1 then
    last, online = tonumber(call('HGET', key('user:' .. user), 'frozen') or 0), 0
  elseif sessions then
    n = count(user)
  end
  if last < kept then last, online = 0, 0 end
  out[i] = {online, last, n}
end
return done(out)

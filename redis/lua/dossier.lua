-- All that is known of users, at one instant.
--
-- ARGV[2]   marks so far, when the caller read the sets of days
-- ARGV[3…]  users
-- reply     {{ban key, ban, …}, {kind, name, invisible, frozen, last seen, number,
--           {friend, since, …}, {session as in lookup.lua, …}, {id, end, …},
--           {kind:day, …} if marks changed since, else false, 1 if some marks
--           have left else 0}, …}
-- cost      O(sessions + friends) for each, and O(bans)

local function kept(user)
  local out = {}
  for _, sid in ipairs(call('ZRANGE', key('e:' .. user), 0, -1)) do
    local answer = ended(sid)
    if answer[1] == 'ended' then
      out[#out + 1] = sid
      out[#out + 1] = answer[3]
    end
  end
  return out
end

local function marksOf(n)
  local out = {}
  if not n then return out end
  for _, field in ipairs(call('HKEYS', key('days'))) do
    if has(dayKey(field), tonumber(n)) then out[#out + 1] = field end
  end
  return out
end

local same = (call('HGET', part, 'marks') or '0') == ARGV[2]
local out = {call('HGETALL', key('bans'))}
for i = 3, #ARGV do
  local user, sessions = ARGV[i], {}
  for _, s in ipairs(sessionsOf(user)) do sessions[#sessions + 1] = live(s) end
  local r = call('HMGET', key('user:' .. user), 'kind', 'name', 'frozen')
  local n = call('HGET', key('num'), user)
  out[#out + 1] = {
    r[1], r[2], invisible(user) and 1 or 0, r[3] or '', call('ZSCORE', key('seen'), user) or '', n or '',
    call('ZRANGE', key('f:' .. user), 0, -1, 'WITHSCORES'), sessions, kept(user), not same and marksOf(n),
    n and isAway(n) and 1 or 0,
  }
end
return done(out)

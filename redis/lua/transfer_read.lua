-- needs: env invisible event session_large session_read session due session_due days_index days
-- Reads all that is known of users, at one instant.
--
-- returns  {the field banchange, {kind, name, invisible, frozen, last seen, number, 1
--          if the archive has some of their marks else 0, {friend, since, …},
--          {session as in session_lookup.lua, …}, {id, end, …}, {kind:day, …} if marks
--          changed since, else false}, …} of the first users, of one at least. A user
--          of whom more is known has nothing behind the 1 or 0, and is to be read in
--          steps
-- costs    bounded by the caller

local markChange = ARGV[2] -- the field of that name when the caller read the sets of days
local mostCost = tonumber(ARGV[3]) -- of the answer, in about microseconds
local users = argumentsFrom(4)

local budget = mostCost

local function endedOf(user)
  local out = {}
  for _, sid in ipairs(call('ZRANGE', key('e:' .. user), 0, -1)) do
    local answer = endedReply(sid)
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
  for _, f in ipairs((someFields(key('days'), '', '-inf', '+inf', 100 * budget))) do
    local field = f[1] .. ':' .. f[2]
    if contains(dayKey(field), tonumber(n)) then out[#out + 1] = field end
  end
  return out
end

local changes = call('HMGET', part, 'markchange', 'banchange')
local same = (changes[1] or '0') == markChange
local days = same and 0 or call('HLEN', key('days'))
local out = {num(changes[2] or 0)}
for _, user in ipairs(users) do
  -- Estimate first: a user who costs too much behind others waits for the next call.
  local cost = 20 + call('ZCARD', key('f:' .. user)) + 12 * call('ZCARD', key('u:' .. user)) + 5 * call('ZCARD', key('e:' .. user)) + days
  if #out > 1 and cost > budget then break end
  local r = call('HMGET', key('user:' .. user), 'kind', 'name', 'frozen')
  local n = call('HGET', key('num'), user)
  local d = {
    r[1], r[2], invisible(user) and 1 or 0, r[3] or '', call('ZSCORE', key('seen'), user) or '', n or '',
    n and hasArchivedMarks(n) and 1 or 0,
  }
  if cost <= mostCost then
    local sessions = {}
    for _, s in ipairs(sessionsOf(user)) do sessions[#sessions + 1] = liveReply(s) end
    d[8], d[9], d[10], d[11] = call('ZRANGE', key('f:' .. user), 0, -1, 'WITHSCORES'), sessions, endedOf(user), not same and marksOf(n)
  end
  out[#out + 1] = d
  budget = budget - cost
end
return done(out)

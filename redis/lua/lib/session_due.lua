-- Sessions that are past their deadline: whoever meets one writes its end. Needs due.lua
-- and session.lua.
--
-- Gives, of one session: endIfOverdue. Of a user: sessionsOf, hasSession, endDueOf and
-- endDueOfLarge. Of the partition: endDueSessions.

-- endIfOverdue ends a session that is past its deadline; false if it is not.
local function endIfOverdue(s)
  local t, cause = deadline(s)
  if at < t then return false end
  endSession(s, t, cause)
  return true
end

-- endOverdue ends those of some sessions that are past their deadline, the one that
-- ended first before the others, and returns the rest.
local function endOverdue(sessions)
  local rest, over = {}, {}
  for _, s in ipairs(sessions) do
    local t, cause = deadline(s)
    if at < t then rest[#rest + 1] = s else over[#over + 1] = {s, t, cause, #over} end
  end
  table.sort(over, function(a, b)
    if a[2] ~= b[2] then return a[2] < b[2] end
    return a[4] < b[4]
  end)
  for _, o in ipairs(over) do endSession(o[1], o[2], o[3]) end
  return rest
end

-- sessionsOf returns a user's live sessions by login.
local function sessionsOf(user)
  local out = {}
  for _, sid in ipairs(call('ZRANGE', key('u:' .. user), 0, -1)) do out[#out + 1] = loadSession(sid) end
  return endOverdue(out)
end

-- endDueOf ends sessions of a user that are past their deadline, before an event of the
-- user is told: events of one user come in the order in which they happened. Those of a
-- user with very many sessions wait for the sweep.
local endDueOf

do
  local budget = mostLooked -- sessions that one script looks at for that

  function endDueOf(user)
    local n = call('ZCARD', key('u:' .. user))
    if n == 0 or n > budget or not anyDue() then return end
    budget = budget - n
    sessionsOf(user)
  end
end

-- endDueOfLarge ends a few sessions of a large user that are past their deadline, and
-- returns whether there may be more.
local function endDueOfLarge(user, most)
  local sids, due, more = {}, {}, false
  for order, upTo in pairs({ue = at, ui = effectiveNow(at)}) do
    local some = call('ZRANGEBYSCORE', key(order .. ':' .. user), '-inf', upTo, 'LIMIT', 0, most)
    if #some == most then more = true end
    for _, sid in ipairs(some) do
      if not sids[sid] then due[#due + 1] = loadSession(sid) end
      sids[sid] = true
    end
  end
  endOverdue(due)
  return more
end

-- hasSession reports whether a user has a live session. It ends those past their
-- deadline that it meets.
local function hasSession(user)
  local mine, rank = key('u:' .. user), 0
  for _ = 1, 20 do
    local sid = call('ZRANGE', mine, rank, rank)[1]
    if not sid then return false end
    local s = loadSession(sid)
    if not s then
      rank = rank + 1
    elseif not endIfOverdue(s) then
      return true
    end
  end
  return true -- so many that a sweep will find out
end

-- endDueSessions ends sessions of the partition that are past their deadline, and
-- returns how many it looked at: budget at most, of all orders together.
local function endDueSessions(budget)
  local n, line = 0, effectiveNow(at)
  local function endIn(order, upTo)
    local sids = call('ZRANGEBYSCORE', order, '-inf', upTo, 'LIMIT', 0, budget - n)
    n = n + #sids
    for _, sid in ipairs(sids) do
      local s = readSession(sid)
      if not s then -- what has no session must not stand here for ever
        call('ZREM', order, sid)
      elseif not cutoffOf(s) and not endIfOverdue(s) then
        placeSession(s)
      end
    end
  end
  endIn(key('ends'), at)
  for _, idle in ipairs(call('SMEMBERS', key('idles'))) do
    if n >= budget then return n end
    local name = key('idle:' .. idle)
    if idle == 'postponed' or idle == 'other' then endIn(key('deadline:' .. idle), line) else endIn(name, line - idle) end
    if call('EXISTS', name) == 0 then call('SREM', key('idles'), idle) end
  end
  return n
end

-- Sessions, their indexes and their ends. Needs event.lua.

-- A session is a packed record: version, idle timeout and lifetime (ms), first
-- half of the token's hash, user, kind, app, device, device id, address, and a
-- rest that scripts do not look into. Its id begins with the time of the login.
-- One of version 2 came by an import with a deadline that had been put off, which
-- stands behind the rest: until its next touch it keeps that, and is among the
-- late ones, not among those of its idle timeout.
local head = '>BI8I8c16Bc0Bc0Bc0Bc0Bc0Bc0'

local function pack(s)
  local tail = s.postponed and struct.pack('>I8', s.postponed) or ''
  return struct.pack(head, s.postponed and 2 or 1, s.idle, s.life, s.token, #s.user, s.user, #s.kind, s.kind, #s.app, s.app,
    #s.device, s.device, #s.deviceID, s.deviceID, #s.ip, s.ip) .. s.rest .. tail
end

local function open(sid, blob)
  local s, place, version = {id = sid, blob = blob}, nil, nil
  version, s.idle, s.life, s.token, s.user, s.kind, s.app, s.device, s.deviceID, s.ip, place = struct.unpack(head, blob)
  s.rest = string.sub(blob, place)
  if version == 2 then
    s.postponed = struct.unpack('>I8', s.rest, #s.rest - 7)
    s.rest = string.sub(s.rest, 1, -9)
  end
  s.login = struct.unpack('>I6', sid)
  return s
end

-- Sessions of one idle timeout stand in one order. Past so many timeouts those of
-- others stand together, as the late ones do, and by deadline among the odd.
local mostIdles = 64

local function idleName(s) return (s.postponed and 'postponed') or (s.odd and 'other') or num(s.idle) end
local function idleKey(s) return key('idle:' .. idleName(s)) end

-- read reads a session whose end has not been written; nil if there is none.
local function read(sid)
  local blob = call('GET', key('s:' .. sid))
  if not blob then return nil end
  local s = open(sid, blob)
  s.seen = tonumber(call('ZSCORE', idleKey(s), sid) or nil)
  if not s.seen then
    s.seen = tonumber(call('ZSCORE', key('idle:other'), sid) or nil)
    s.odd = s.seen ~= nil
    s.seen = s.seen or s.login
  end
  return s
end

-- readCutoff reads what has ended of a user's sessions without having been
-- written, see session_cutoff.lua: the cutoffs, the earliest first, and how far they are
-- written.
local cutoffsOf = {}

local function readCutoff(user)
  if cutoffsOf[user] then return cutoffsOf[user].list, cutoffsOf[user].cursor end
  local blob, list, cursor = call('GET', key('cutoff:' .. user)), {}, ''
  if blob then
    local place
    cursor, place = struct.unpack('>Bc0', blob)
    while place <= #blob do
      local c, bare = {}, nil
      c.at, bare, c.id, c.device, c.except, c.cause, c.reason, c.actor, place =
        struct.unpack('>I8Bc16Bc0Bc0Bc0I2c0Bc0', blob, place)
      c.bare = bare == 1
      list[#list + 1] = c
    end
  end
  cutoffsOf[user] = {list = list, cursor = cursor}
  return list, cursor
end

-- cutoffOf returns the cutoff that ended a session; nil if none did.
local function cutoffOf(s)
  if cutoffs == 0 then return nil end
  for _, c in ipairs((readCutoff(s.user))) do
    if (c.device == '' or s.device == c.device) and s.id ~= c.except then return c end
  end
  return nil
end

-- load reads a session that has not been ended; nil if there is none.
local function load(sid)
  local s = read(sid)
  if s and cutoffOf(s) then return nil end
  return s
end

-- deadline returns when a session ends by itself, and why.
local function deadline(s)
  local expires = extend(math.max(s.seen + s.idle, s.postponed or 0))
  if s.life > 0 and s.login + s.life <= expires then return s.login + s.life, 'lifetime', expires end
  return expires, 'expired', expires
end

-- live is how a live session stands in a reply.
local function live(s)
  local _, _, expires = deadline(s)
  return {'live', s.id, s.blob, num(s.seen), num(expires)}
end

local function index(s, command)
  for field, value in pairs({kind = s.kind, app = s.app, device = s.device, ip = s.ip}) do
    if value ~= '' then
      local name = 'by:' .. field .. ':' .. value
      if command == 'ZADD' then call('ZADD', key(name), s.login, s.id) else call('ZREM', key(name), s.id) end
    end
  end
end

-- Sessions of invisible users stand in the orders by login as all do, and once
-- more in those of their own, so that what the public is shown can be counted.
local function veil(s)
  call('ZADD', key('invisible:login'), s.login, s.id)
  for field, value in pairs({kind = s.kind, app = s.app, device = s.device, ip = s.ip}) do
    if value ~= '' then call('ZADD', key('invisible:by:' .. field .. ':' .. value), s.login, s.id) end
  end
end

local function unveil(s)
  if call('ZREM', key('invisible:login'), s.id) == 0 then return end
  for field, value in pairs({kind = s.kind, app = s.app, device = s.device, ip = s.ip}) do
    if value ~= '' then call('ZREM', key('invisible:by:' .. field .. ':' .. value), s.id) end
  end
end

-- isVeiled tells for each of some sessions whether it is one of them.
local function isVeiled(sids)
  local name = key('invisible:login')
  if #sids == 0 or call('EXISTS', name) == 0 then return {} end
  return call('ZMSCORE', name, unpack(sids))
end

-- unveiled returns those of some sessions that are none of them.
local function unveiled(sids)
  local out, veiled = {}, isVeiled(sids)
  for i, sid in ipairs(sids) do
    if not veiled[i] then out[#out + 1] = sid end
  end
  return out
end

local idlesKnown = {} -- timeouts that this script has entered

-- enterIdle enters the timeout of a session, or makes it an odd one.
local function enterIdle(s)
  local name = idleName(s)
  if idlesKnown[name] then return end
  if call('SADD', key('idles'), name) == 1 and not (s.postponed or s.odd) and call('SCARD', key('idles')) > mostIdles then
    call('SREM', key('idles'), name)
    s.odd = true
    return enterIdle(s)
  end
  idlesKnown[name] = true
end

-- place makes a session stand in the order of signs of life, and among the
-- absolute ends.
local function place(s)
  enterIdle(s)
  call('ZADD', idleKey(s), s.seen, s.id)
  if s.postponed then
    call('ZADD', key('deadline:postponed'), s.postponed, s.id)
  elseif s.odd then
    call('ZADD', key('deadline:other'), s.seen + s.idle, s.id)
  end
  if s.life > 0 then call('ZADD', key('ends'), s.login + s.life, s.id) else call('ZREM', key('ends'), s.id) end
  if isLarge(s.user) then enlist(s) end
end

-- displace takes a session out of the order of signs of life.
local function displace(s)
  call('ZREM', idleKey(s), s.id)
  if s.postponed then call('ZREM', key('deadline:postponed'), s.id) end
  if s.odd then call('ZREM', key('deadline:other'), s.id) end
end

-- enlarge makes a user large who has too many sessions to look at all of them.
local function enlarge(user)
  local mine = key('u:' .. user)
  if isLarge(user) or call('ZCARD', mine) <= mostLooked then return end
  largeKnown[user] = true
  countLarge(1)
  for _, sid in ipairs(call('ZRANGE', mine, 0, -1)) do
    local s = read(sid)
    if s then enlist(s) end
  end
end

-- store stores a session that begins, with its indexes.
local function store(s)
  call('SET', key('s:' .. s.id), s.blob)
  call('SET', key('tok:' .. s.token), s.id)
  call('ZADD', key('login'), s.login, s.id)
  call('ZADD', key('u:' .. s.user), s.login, s.id)
  if s.deviceID ~= '' then call('HSET', key('d:' .. s.user), s.deviceID, s.id) end
  index(s, 'ZADD')
  if invisible(s.user) then veil(s) end
  place(s)
  enlarge(s.user)
end

local function forgetToken(s) call('DEL', key('tok:' .. s.token)) end

-- packEnd packs what is remembered of the end of a session, bare of whose it was
-- if that was erased.
local function packEnd(s, t, cause, reason, actor, bare)
  local _, _, expires = deadline(s)
  local seen, blob = s.seen, s.blob
  if bare then
    seen, expires = s.login, 0
    blob = pack({idle = 0, life = 0, token = s.token, user = '', kind = '', app = '', device = '', deviceID = '', ip = '', rest = struct.pack('>BI2B', 0, 0, 0)})
  end
  return struct.pack('>I8I8I8Bc0I2c0Bc0', t, seen, expires, #cause, cause, #reason, reason, #actor, actor) .. blob
end

-- remember keeps the end of a session, so that its client can be told.
local function remember(s, t, cause, reason, actor, bare)
  local left = keep - math.max(0, at - t)
  if left <= 0 then
    forgetToken(s)
    return
  end
  call('SET', key('end:' .. s.id), packEnd(s, t, cause, reason, actor, bare), 'PX', left)
  call('PEXPIRE', key('tok:' .. s.token), left)
  if not bare then
    local mine = key('e:' .. s.user)
    call('ZADD', mine, t, s.id)
    call('ZREMRANGEBYSCORE', mine, '-inf', at - keep)
    call('PEXPIRE', mine, keep)
  end
end

-- finish ends a session.
local function finish(s, t, cause, reason, actor, bare)
  advance()
  call('DEL', key('s:' .. s.id))
  call('ZREM', key('login'), s.id)
  displace(s)
  if s.life > 0 then call('ZREM', key('ends'), s.id) end
  call('ZREM', key('u:' .. s.user), s.id)
  delist(s)
  if s.deviceID ~= '' and call('HGET', key('d:' .. s.user), s.deviceID) == s.id then call('HDEL', key('d:' .. s.user), s.deviceID) end
  index(s, 'ZREM')
  unveil(s)
  remember(s, t, cause, reason or '', actor or '', bare)
  emit('log', SESSION_ENDED, bare and '' or s.user, {
    at = t, sid = s.id, cause = cause, reason = reason, actor = actor,
    audience = bare and FOR_ALL or nil,
  })
end

-- overdue ends a session that is past its deadline; false if it is not.
local function overdue(s)
  local t, cause = deadline(s)
  if at < t then return false end
  finish(s, t, cause)
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
  for _, o in ipairs(over) do finish(o[1], o[2], o[3]) end
  return rest
end

-- sessionsOf returns a user's live sessions by login.
local function sessionsOf(user)
  local out = {}
  for _, sid in ipairs(call('ZRANGE', key('u:' .. user), 0, -1)) do out[#out + 1] = load(sid) end
  return endOverdue(out)
end

-- anyDue reports whether any session of the partition is past its deadline.
local function anyDue()
  if call('ZCOUNT', key('ends'), '-inf', at) > 0 then return true end
  local line = floor(at)
  for _, idle in ipairs(call('SMEMBERS', key('idles'))) do
    local name, upTo = key('idle:' .. idle), line
    if idle == 'postponed' or idle == 'other' then name = key('deadline:' .. idle) else upTo = line - idle end
    if call('ZCOUNT', name, '-inf', upTo) > 0 then return true end
  end
  return false
end

-- settleSessions ends what is past its deadline of a user, of whom an event is about
-- to be told: events of one user come in the order in which they happened. Who has
-- very many sessions waits for the sweep.
local toSettle = mostLooked -- sessions that one script looks at for that

local function settleSessions(user)
  local n = call('ZCARD', key('u:' .. user))
  if n == 0 or n > toSettle or not anyDue() then return end
  toSettle = toSettle - n
  sessionsOf(user)
end

-- settleLarge does so for a large user, a few of them, and returns whether there may
-- be more.
local function settleLarge(user, most)
  local sids, due, more = {}, {}, false
  for order, upTo in pairs({ue = at, ui = floor(at)}) do
    local some = call('ZRANGEBYSCORE', key(order .. ':' .. user), '-inf', upTo, 'LIMIT', 0, most)
    if #some == most then more = true end
    for _, sid in ipairs(some) do
      if not sids[sid] then due[#due + 1] = load(sid) end
      sids[sid] = true
    end
  end
  endOverdue(due)
  return more
end

-- anySession reports whether a user has a live session. It ends those past their
-- deadline that it meets.
local function anySession(user)
  local mine, rank = key('u:' .. user), 0
  for _ = 1, 20 do
    local sid = call('ZRANGE', mine, rank, rank)[1]
    if not sid then return false end
    local s = load(sid)
    if not s then
      rank = rank + 1
    elseif not overdue(s) then
      return true
    end
  end
  return true -- so many that a sweep will find out
end

-- drain ends sessions that are past their deadline and returns how many it looked
-- at: budget at most, of all orders together.
local function drain(budget)
  local n, line = 0, floor(at)
  local function take(order, upTo)
    local sids = call('ZRANGEBYSCORE', order, '-inf', upTo, 'LIMIT', 0, budget - n)
    n = n + #sids
    for _, sid in ipairs(sids) do
      local s = read(sid)
      if not s then -- nothing is to stand here that cannot be taken away
        call('ZREM', order, sid)
      elseif not cutoffOf(s) and not overdue(s) then
        place(s)
      end
    end
  end
  take(key('ends'), at)
  for _, idle in ipairs(call('SMEMBERS', key('idles'))) do
    if n >= budget then return n end
    local name = key('idle:' .. idle)
    if idle == 'postponed' or idle == 'other' then take(key('deadline:' .. idle), line) else take(name, line - idle) end
    if call('EXISTS', name) == 0 then call('SREM', key('idles'), idle) end
  end
  return n
end

-- find returns the id that a reference leads to; nil if it leads nowhere.
local function find(ref)
  if string.sub(ref, 1, 1) == 'T' then return call('GET', key('tok:' .. string.sub(ref, 2))) or nil end
  return string.sub(ref, 2)
end

-- endBy returns how a session ended that a cutoff concerns: it may have been past
-- its deadline before.
local function endBy(s, c)
  local t, cause = deadline(s)
  if t <= c.at then return t, cause, '', '' end
  return c.at, c.cause, c.reason, c.actor
end

-- ended returns what is remembered of a session that ended: {'ended', id, end}.
local function ended(sid)
  local blob = call('GET', key('end:' .. sid))
  if not blob and cutoffs > 0 then
    local s = read(sid)
    local c = s and cutoffOf(s)
    if c then
      local t, cause, reason, actor = endBy(s, c)
      blob = packEnd(s, t, cause, reason, actor, c.bare)
    end
  end
  if not blob or struct.unpack('>I8', blob) + keep <= at then return {'unknown'} end
  return {'ended', sid, blob}
end

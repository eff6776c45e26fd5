-- What every script of a partition begins with.
--
-- KEYS[1]  rc:{p}, the root of the partition; every other key is derived from
--          it, carries the same hash tag, and so lies in the same slot
-- ARGV[1]  env, packed: now, the last time the caller heard from the partition,
--          window and grace that decide user.offline (s), restart grace (ms),
--          how long ended sessions are kept (ms), whether presence makes events
-- cost     O(1), and O(log n) for each key of a session that changes
--
-- A script ends with "return done(reply)", which writes the partition's state
-- back if it changed.

local root = KEYS[1]
local call = redis.call
local now, heard, announced, grace, keep, presence = struct.unpack('>I8I8I8I8I8B', ARGV[1])

local function key(name) return root .. ':' .. name end
local function num(n) return string.format('%.0f', n) end

-- The state of the partition: its clock never runs backwards, stamp is the last
-- sign of life once the engine has been ticked, outages are the gaps between
-- stamps, silent is the second up to which silence has been announced, events
-- the place of the newest event.
local part = key('part')
local state = call('HMGET', part, 'clock', 'stamp', 'outages', 'silent', 'events')
local clock = tonumber(state[1]) or 0
local at = math.max(now, clock)
local stamp = tonumber(state[2])
local silent = tonumber(state[4]) or 0
local lastEvent = tonumber(state[5]) or 0
local changed = {}

local function set(field, value)
  changed[#changed + 1] = field
  changed[#changed + 1] = value
end

local function advance()
  if at > clock then
    set('clock', num(at))
    clock = at
  end
end

local function done(reply)
  if #changed > 0 then call('HSET', part, unpack(changed)) end
  return reply
end

local maxGap, keptOutages = 5000, 16
local outages = {}
if state[3] then
  for i = 1, #state[3], 16 do
    local from, to = struct.unpack('>I8I8', state[3], i)
    outages[#outages + 1] = {from, to}
  end
end

local function saveOutages()
  local out = {}
  for i = math.max(1, #outages - keptOutages + 1), #outages do
    out[#out + 1] = struct.pack('>I8I8', outages[i][1], outages[i][2])
  end
  call('HINCRBY', part, 'gaps', 1)
  set('outages', table.concat(out))
end

if stamp then
  local last = math.max(stamp, math.min(heard, now))
  if now - last > maxGap then
    outages[#outages + 1] = {last, now}
    saveOutages()
    stamp = now
    set('stamp', num(now))
  end
end

-- extend moves a deadline that fell into an outage, or into the grace behind
-- it, to the end of the grace. It keeps the order of deadlines.
local function extend(deadline)
  for i = 1, #outages do
    local o = outages[i]
    if o[1] < deadline and deadline < o[2] + grace then deadline = o[2] + grace end
  end
  return deadline
end

-- floor is the instant from which windows are measured: during the grace after
-- an outage, the instant the outage began. An idle deadline has passed at t
-- exactly if it is not after floor(t).
local function floor(t)
  for i = #outages, 1, -1 do
    local o = outages[i]
    if o[1] <= t and t < o[2] + grace then t = o[1] end
  end
  return t
end

-- since returns the first second that counts as online for a window.
local function since(window)
  return math.max(1, math.floor(floor(at) / 1000) - window)
end

-- Events ---------------------------------------------------------------------

local SESSION_STARTED, SESSION_ENDED, USER_ONLINE, USER_OFFLINE = 0, 1, 2, 3
local USER_BANNED, USER_UNBANNED, USER_ERASED = 4, 5, 6
local FOR_ALL, FOR_TRUTH, FOR_PUBLIC = 0, 1, 2

local function invisible(user)
  return call('SISMEMBER', key('hidden'), user) == 1
end

-- emit appends an event. Its place is the server's time in microseconds, made
-- unique and ascending over both streams of the partition.
local function emit(stream, kind, user, opt)
  opt = opt or {}
  local t = call('TIME')
  lastEvent = math.max(lastEvent + 1, t[1] * 1000000 + t[2])
  set('events', num(lastEvent))
  local audience = opt.audience or (user ~= '' and invisible(user) and FOR_TRUTH) or FOR_ALL
  local sid, cause, reason, actor = opt.sid or '', opt.cause or '', opt.reason or '', opt.actor or ''
  call('XADD', key(stream), num(lastEvent) .. '-0', 'e', struct.pack('>BBI8Bc0Bc0Bc0I2c0Bc0',
    kind, audience, opt.at or at, #user, user, #sid, sid, #cause, cause, #reason, reason, #actor, actor))
end

-- Presence -------------------------------------------------------------------

-- hear is a sign of life of users, each named once.
local function hear(users)
  local seen, sec = key('seen'), math.floor(at / 1000)
  advance()
  local add = {}
  for i = 1, #users do
    add[2 * i - 1], add[2 * i] = sec, users[i]
  end
  if presence == 0 then
    call('ZADD', seen, 'GT', unpack(add))
    return
  end
  local line = since(announced)
  local before = call('ZMSCORE', seen, unpack(users))
  call('ZADD', seen, 'GT', unpack(add))
  for i = 1, #users do
    local last = tonumber(before[i] or 0)
    if last < line or last < silent then
      if last >= silent and last > 0 then emit('pres', USER_OFFLINE, users[i]) end
      emit('pres', USER_ONLINE, users[i])
    end
  end
end

-- hide makes a user gone: offline until their next sign of life.
local function hide(user)
  local last = tonumber(call('ZSCORE', key('seen'), user) or 0)
  if last <= 0 then return end
  if presence == 1 and last >= silent then emit('pres', USER_OFFLINE, user) end
  call('ZADD', key('seen'), -last, user)
end

-- Sessions -------------------------------------------------------------------

-- A session is a packed record: version, idle timeout and lifetime (ms), first
-- half of the token's hash, user, kind, app, device, device id, address, and a
-- rest that scripts do not look into. Its id begins with the time of the login.
local head = '>BI8I8c16Bc0Bc0Bc0Bc0Bc0Bc0'

local function pack(s)
  return struct.pack(head, 1, s.idle, s.life, s.token, #s.user, s.user, #s.kind, s.kind, #s.app, s.app,
    #s.device, s.device, #s.deviceID, s.deviceID, #s.ip, s.ip) .. s.rest
end

local function open(sid, blob)
  local s, place, _ = {id = sid, blob = blob}, nil, nil
  _, s.idle, s.life, s.token, s.user, s.kind, s.app, s.device, s.deviceID, s.ip, place = struct.unpack(head, blob)
  s.rest = string.sub(blob, place)
  s.login = struct.unpack('>I6', sid)
  return s
end

local function idleKey(s) return key('idle:' .. num(s.idle)) end

-- load reads a session that has not been ended; nil if there is none.
local function load(sid)
  local blob = call('GET', key('s:' .. sid))
  if not blob then return nil end
  local s = open(sid, blob)
  s.seen = tonumber(call('ZSCORE', idleKey(s), sid) or s.login)
  return s
end

-- deadline returns when a session ends by itself, and why.
local function deadline(s)
  local expires = extend(s.seen + s.idle)
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
      local name = key('by:' .. field .. ':' .. value)
      if command == 'ZADD' then call('ZADD', name, s.login, s.id) else call('ZREM', name, s.id) end
    end
  end
end

-- place makes a session stand in the order of signs of life, and among the
-- absolute ends.
local function place(s)
  call('ZADD', idleKey(s), s.seen, s.id)
  call('SADD', key('idles'), num(s.idle))
  if s.life > 0 then call('ZADD', key('ends'), s.login + s.life, s.id) else call('ZREM', key('ends'), s.id) end
end

local function forgetToken(s) call('DEL', key('tok:' .. s.token)) end

-- remember keeps the end of a session, so that its client can be told.
local function remember(s, t, cause, reason, actor, bare)
  local left = keep - math.max(0, at - t)
  if left <= 0 then
    forgetToken(s)
    return
  end
  local _, _, expires = deadline(s)
  local seen, blob = s.seen, s.blob
  if bare then
    seen, expires = s.login, 0
    blob = pack({idle = 0, life = 0, token = s.token, user = '', kind = '', app = '', device = '', deviceID = '', ip = '', rest = struct.pack('>BI2B', 0, 0, 0)})
  end
  call('SET', key('end:' .. s.id), struct.pack('>I8I8I8Bc0I2c0Bc0', t, seen, expires, #cause, cause, #reason, reason, #actor, actor) .. blob, 'PX', left)
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
  call('ZREM', idleKey(s), s.id)
  if s.life > 0 then call('ZREM', key('ends'), s.id) end
  call('ZREM', key('u:' .. s.user), s.id)
  index(s, 'ZREM')
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

-- sessionsOf returns a user's live sessions by login.
local function sessionsOf(user)
  local out = {}
  for _, sid in ipairs(call('ZRANGE', key('u:' .. user), 0, -1)) do
    local s = load(sid)
    if s and not overdue(s) then out[#out + 1] = s end
  end
  return out
end

-- drain ends up to budget sessions that are past their deadline and returns how
-- many there were.
local function drain(budget)
  local n, line = 0, floor(at)
  local function take(sids)
    for _, sid in ipairs(sids) do
      local s = load(sid)
      if s and overdue(s) then n = n + 1 end
    end
  end
  take(call('ZRANGEBYSCORE', key('ends'), '-inf', at, 'LIMIT', 0, budget))
  for _, idle in ipairs(call('SMEMBERS', key('idles'))) do
    if n >= budget then return n end
    local name = key('idle:' .. idle)
    take(call('ZRANGEBYSCORE', name, '-inf', line - idle, 'LIMIT', 0, budget - n))
    if call('EXISTS', name) == 0 then call('SREM', key('idles'), idle) end
  end
  return n
end

-- find returns the id that a reference leads to; nil if it leads nowhere.
local function find(ref)
  if string.sub(ref, 1, 1) == 'T' then return call('GET', key('tok:' .. string.sub(ref, 2))) or nil end
  return string.sub(ref, 2)
end

-- ended returns what is remembered of a session that ended: {'ended', id, end}.
local function ended(sid)
  local blob = call('GET', key('end:' .. sid))
  if not blob or struct.unpack('>I8', blob) + keep <= at then return {'unknown'} end
  return {'ended', sid, blob}
end

-- Days -----------------------------------------------------------------------

-- number returns the user's number, giving them one if need be.
local function number(user)
  local n = call('HGET', key('num'), user)
  if n then return tonumber(n) end
  n = call('SPOP', key('free'))
  if n then
    n = tonumber(n)
  else
    n = call('HINCRBY', part, 'numbers', 1) - 1
  end
  call('HSET', key('num'), user, n)
  call('HSET', key('ids:' .. math.floor(n / 64)), n, user)
  return n
end

local function dayKey(kind, day) return key('day:' .. kind .. ':' .. day) end

-- A day is a set while that is smaller: up to 512 members in 4 bytes each, past
-- that in some 56; a bitmap takes a bit for each number.
local function dense(members, numbers)
  if members <= 512 then return members * 32 > numbers end
  return members * 448 > numbers
end

-- mark notes that a number was there; false if that stood already.
local function mark(n, kind, day)
  local name, field = dayKey(kind, day), kind .. ':' .. day
  local numbers = tonumber(call('HGET', part, 'numbers') or 0)
  if call('TYPE', name).ok == 'string' then
    if call('SETBIT', name, n, 1) == 1 then return false end
  else
    if call('SADD', name, n) == 0 then return false end
    if dense(call('SCARD', name), numbers) then
      local members = call('SMEMBERS', name)
      call('DEL', name)
      for _, m in ipairs(members) do call('SETBIT', name, m, 1) end
    end
  end
  call('HINCRBY', key('days'), field, 1)
  return true
end

local function marked(name, n)
  if call('TYPE', name).ok == 'string' then return call('GETBIT', name, n) == 1 end
  return call('SISMEMBER', name, n) == 1
end

-- unmark takes a mark back; false if there was none.
local function unmark(n, field)
  local name = key('day:' .. field)
  if not marked(name, n) then return false end
  if call('TYPE', name).ok == 'string' then call('SETBIT', name, n, 0) else call('SREM', name, n) end
  if call('HINCRBY', key('days'), field, -1) <= 0 then
    call('HDEL', key('days'), field)
    call('DEL', name)
  end
  return true
end

-- release gives back the number of a user who has no marks left.
local function release(user, n)
  for _, field in ipairs(call('HKEYS', key('days'))) do
    if marked(key('day:' .. field), n) then return end
  end
  call('HDEL', key('num'), user)
  call('HDEL', key('ids:' .. math.floor(n / 64)), n)
  if call('EXISTS', key('num')) == 0 then
    call('DEL', key('free'))
    call('HDEL', part, 'numbers')
  else
    call('SADD', key('free'), n)
  end
end

-- Sessions that start and end, and their indexes. Needs event.lua, session_large.lua and
-- session_read.lua.
--
-- Gives, to write: storeSession, placeSession, unplace, indexSession, hideSession and
-- showSession. To end: endSession. What is past its deadline is in
-- session_due.lua.

-- countClass changes how many sessions there are of the kind, app and device that a session
-- has. Those of a kind alone are not counted: their order has the number.
local function countClass(name, s, by)
  if s.app == '' and s.device == '' then return end
  local class = struct.pack('Bc0Bc0Bc0', #s.kind, s.kind, #s.app, s.app, #s.device, s.device)
  if call('HINCRBY', key(name), class, by) <= 0 then call('HDEL', key(name), class) end
end

-- indexSession adds a session to the orders by kind, app, device and address (ZADD), or
-- removes it from them (ZREM), and counts those of each app, device and class. The set kinds
-- has the kinds that have an order: together these are the order of all sessions.
local function indexSession(s, command)
  for field, value in pairs({kind = s.kind, app = s.app, device = s.device, ip = s.ip}) do
    if value ~= '' then
      local name = 'by:' .. field .. ':' .. value
      local changed
      if command == 'ZADD' then changed = call('ZADD', key(name), s.login, s.id) else changed = -call('ZREM', key(name), s.id) end
      if changed ~= 0 and (field == 'app' or field == 'device') then
        local left = call('ZADD', key('counts:' .. field), 'INCR', changed, value)
        if tonumber(left) <= 0 then call('ZREM', key('counts:' .. field), value) end
      end
      if changed ~= 0 and field == 'kind' then
        countClass('classes', s, changed)
        if changed > 0 then
          call('SADD', key('kinds'), value)
        elseif call('EXISTS', key(name)) == 0 then
          call('SREM', key('kinds'), value)
        end
      end
    end
  end
end

-- hideSession adds a session of an invisible user to the orders of those. It stays in
-- the orders of all, so what the public is shown can be counted: all but the hidden.
local function hideSession(s)
  if call('ZADD', key('invisible:login'), s.login, s.id) == 0 then return end
  countClass('invisible:classes', s, 1)
  for field, value in pairs({kind = s.kind, app = s.app, device = s.device, ip = s.ip}) do
    if value ~= '' then call('ZADD', key('invisible:by:' .. field .. ':' .. value), s.login, s.id) end
  end
end

-- showSession removes it from them.
local function showSession(s)
  if call('ZREM', key('invisible:login'), s.id) == 0 then return end
  countClass('invisible:classes', s, -1)
  for field, value in pairs({kind = s.kind, app = s.app, device = s.device, ip = s.ip}) do
    if value ~= '' then call('ZREM', key('invisible:by:' .. field .. ':' .. value), s.id) end
  end
end

-- placeSession makes a session stand in the order of its idle timeout, and among the
-- absolute ends if it has one.
local placeSession

do
  local mostTimeouts = 64
  local isRegistered = {} -- timeouts that this script has registered

  -- registerTimeout registers the timeout of a session, or puts it among the others.
  local function registerTimeout(s)
    local name = idleName(s)
    if isRegistered[name] then return end
    if call('SADD', key('idles'), name) == 1 and not (s.postponed or s.otherIdle) and call('SCARD', key('idles')) > mostTimeouts then
      call('SREM', key('idles'), name)
      s.otherIdle = true
      return registerTimeout(s)
    end
    isRegistered[name] = true
  end

  function placeSession(s)
    registerTimeout(s)
    call('ZADD', idleKey(s), s.seen, s.id)
    if s.postponed then
      call('ZADD', key('deadline:postponed'), s.postponed, s.id)
    elseif s.otherIdle then
      call('ZADD', key('deadline:other'), s.seen + s.idle, s.id)
    end
    if s.life > 0 then call('ZADD', key('ends'), s.login + s.life, s.id) else call('ZREM', key('ends'), s.id) end
    if isLarge(s.user) then addToLargeOrders(s) end
  end
end

-- unplace removes a session from the order of its idle timeout.
local function unplace(s)
  call('ZREM', idleKey(s), s.id)
  if s.postponed then call('ZREM', key('deadline:postponed'), s.id) end
  if s.otherIdle then call('ZREM', key('deadline:other'), s.id) end
end

-- storeSession stores a session that starts, with its indexes.
local storeSession

do
  -- growLarge makes a user large who now has too many sessions to look at all of them.
  local function growLarge(user)
    local mine = key('u:' .. user)
    if isLarge(user) or call('ZCARD', mine) <= mostLooked then return end
    becomeLarge(user)
    for _, sid in ipairs(call('ZRANGE', mine, 0, -1)) do
      local s = readSession(sid)
      if s then addToLargeOrders(s) end
    end
  end

  function storeSession(s)
    call('HSET', key('sessions'), s.id, s.blob)
    local bucket, field = tokenPlace(s.token)
    call('HSET', bucket, field, s.id)
    call('ZADD', key('u:' .. s.user), s.login, s.id)
    if s.deviceID ~= '' then call('HSET', key('d:' .. s.user), s.deviceID, s.id) end
    indexSession(s, 'ZADD')
    if invisible(s.user) then hideSession(s) end
    placeSession(s)
    growLarge(s.user)
  end
end

-- endSession ends a session: the end is kept for a while, everything else goes. If it
-- is bare, nothing of it tells whose session it was.
local endSession

do
  -- keepEnd keeps the end of a session, so that its client can be told.
  local function keepEnd(s, t, cause, reason, actor, bare)
    local left = endedKept - math.max(0, at - t)
    if left <= 0 then return end
    call('SET', key('end:' .. s.id), packEnd(s, t, cause, reason, actor, bare), 'PX', left)
    call('SET', key('tok:' .. s.token), s.id, 'PX', left)
    if not bare then
      local mine = key('e:' .. s.user)
      call('ZADD', mine, t, s.id)
      call('ZREMRANGEBYSCORE', mine, '-inf', at - endedKept)
      call('PEXPIRE', mine, endedKept)
    end
  end

  function endSession(s, t, cause, reason, actor, bare)
    advance()
    call('HDEL', key('sessions'), s.id)
    call('HDEL', tokenPlace(s.token))
    unplace(s)
    if s.life > 0 then call('ZREM', key('ends'), s.id) end
    call('ZREM', key('u:' .. s.user), s.id)
    removeFromLargeOrders(s)
    if s.deviceID ~= '' and call('HGET', key('d:' .. s.user), s.deviceID) == s.id then call('HDEL', key('d:' .. s.user), s.deviceID) end
    indexSession(s, 'ZREM')
    showSession(s)
    keepEnd(s, t, cause, reason or '', actor or '', bare)
    emit('log', SESSION_ENDED, bare and '' or s.user, {
      at = t, sid = s.id, cause = cause, reason = reason, actor = actor,
      audience = bare and FOR_ALL or nil,
    })
  end
end

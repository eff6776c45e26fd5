-- Sessions, their indexes and their ends. Needs event.lua and session_large.lua.
--
-- Gives, to read: unpackSession, readSession (an end may be noted), loadSession (live),
-- findSession, deadline, liveReply and endedReply. To write: packSession, storeSession,
-- placeSession, unplace, indexSession, hideSession, showSession and forgetToken. To end:
-- endSession. Of cutoffs: readCutoff, cutoffOf and endBy. Of invisible users: areHidden
-- and visibleOnly. What is past its deadline is in session_due.lua.

-- A session is a packed record: version, idle timeout and lifetime (ms), first half of
-- the token's hash, user, kind, app, device, device id, address, and a rest that
-- scripts do not look into. Its id begins with the time of the login. A record of
-- version 2 came by an import and has a postponed idle deadline behind the rest. Until
-- its next touch the session keeps that, and stands among the postponed ones, not among
-- those of its idle timeout.
local recordFormat = '>BI8I8c16Bc0Bc0Bc0Bc0Bc0Bc0'

local function packSession(s)
  local tail = s.postponed and struct.pack('>I8', s.postponed) or ''
  return struct.pack(recordFormat, s.postponed and 2 or 1, s.idle, s.life, s.token, #s.user, s.user, #s.kind, s.kind, #s.app, s.app,
    #s.device, s.device, #s.deviceID, s.deviceID, #s.ip, s.ip) .. s.rest .. tail
end

local function unpackSession(sid, blob)
  local s, place, version = {id = sid, blob = blob}, nil, nil
  version, s.idle, s.life, s.token, s.user, s.kind, s.app, s.device, s.deviceID, s.ip, place = struct.unpack(recordFormat, blob)
  s.rest = string.sub(blob, place)
  if version == 2 then
    s.postponed = struct.unpack('>I8', s.rest, #s.rest - 7)
    s.rest = string.sub(s.rest, 1, -9)
  end
  s.login = struct.unpack('>I6', sid)
  return s
end

-- Sessions of one idle timeout stand in one order, by last sign of life. That is their
-- order by deadline too. Sessions of further timeouts, past 64, stand together in the
-- order other, and once more by deadline; so do those with a postponed deadline.
local function idleName(s) return (s.postponed and 'postponed') or (s.otherIdle and 'other') or num(s.idle) end
local function idleKey(s) return key('idle:' .. idleName(s)) end

-- readSession reads a session whose end has not been written; nil if there is none.
local function readSession(sid)
  local blob = call('GET', key('s:' .. sid))
  if not blob then return nil end
  local s = unpackSession(sid, blob)
  s.seen = tonumber(call('ZSCORE', idleKey(s), sid) or nil)
  if not s.seen then
    s.seen = tonumber(call('ZSCORE', key('idle:other'), sid) or nil)
    s.otherIdle = s.seen ~= nil
    s.seen = s.seen or s.login
  end
  return s
end

-- readCutoff reads the cutoffs of a user, the earliest first, and how far their ends
-- are written: see session_cutoff.lua.
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

-- loadSession reads a session that has not ended, though it may be past its deadline;
-- nil if there is none.
local function loadSession(sid)
  local s = readSession(sid)
  if s and cutoffOf(s) then return nil end
  return s
end

-- deadline returns when a session ends by itself, and why, and its idle deadline.
local function deadline(s)
  local expires = effectiveDeadline(math.max(s.seen + s.idle, s.postponed or 0))
  if s.life > 0 and s.login + s.life <= expires then return s.login + s.life, 'lifetime', expires end
  return expires, 'expired', expires
end

-- liveReply is how a live session stands in a reply.
local function liveReply(s)
  local _, _, expires = deadline(s)
  return {'live', s.id, s.blob, num(s.seen), num(expires)}
end

-- indexSession adds a session to the orders by kind, app, device and address (ZADD), or
-- removes it from them (ZREM), and counts those of each app and device.
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
    end
  end
end

-- hideSession adds a session of an invisible user to the orders of those. It stays in
-- the orders of all, so what the public is shown can be counted: all but the hidden.
local function hideSession(s)
  call('ZADD', key('invisible:login'), s.login, s.id)
  for field, value in pairs({kind = s.kind, app = s.app, device = s.device, ip = s.ip}) do
    if value ~= '' then call('ZADD', key('invisible:by:' .. field .. ':' .. value), s.login, s.id) end
  end
end

-- showSession removes it from them.
local function showSession(s)
  if call('ZREM', key('invisible:login'), s.id) == 0 then return end
  for field, value in pairs({kind = s.kind, app = s.app, device = s.device, ip = s.ip}) do
    if value ~= '' then call('ZREM', key('invisible:by:' .. field .. ':' .. value), s.id) end
  end
end

-- areHidden tells for each of some sessions whether it is hidden: a table by place.
local function areHidden(sids)
  local name = key('invisible:login')
  if #sids == 0 or call('EXISTS', name) == 0 then return {} end
  return call('ZMSCORE', name, unpack(sids))
end

-- visibleOnly returns those of some sessions that are not hidden.
local function visibleOnly(sids)
  local out, hidden = {}, areHidden(sids)
  for i, sid in ipairs(sids) do
    if not hidden[i] then out[#out + 1] = sid end
  end
  return out
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
    call('SET', key('s:' .. s.id), s.blob)
    call('SET', key('tok:' .. s.token), s.id)
    call('ZADD', key('login'), s.login, s.id)
    call('ZADD', key('u:' .. s.user), s.login, s.id)
    if s.deviceID ~= '' then call('HSET', key('d:' .. s.user), s.deviceID, s.id) end
    indexSession(s, 'ZADD')
    if invisible(s.user) then hideSession(s) end
    placeSession(s)
    growLarge(s.user)
  end
end

local function forgetToken(s) call('DEL', key('tok:' .. s.token)) end

-- packEnd packs what is kept of the end of a session: bare, without whose it was, if
-- the user was erased.
local function packEnd(s, t, cause, reason, actor, bare)
  local _, _, expires = deadline(s)
  local seen, blob = s.seen, s.blob
  if bare then
    seen, expires = s.login, 0
    blob = packSession({idle = 0, life = 0, token = s.token, user = '', kind = '', app = '', device = '', deviceID = '', ip = '', rest = struct.pack('>BI2B', 0, 0, 0)})
  end
  return struct.pack('>I8I8I8Bc0I2c0Bc0', t, seen, expires, #cause, cause, #reason, reason, #actor, actor) .. blob
end

-- endSession ends a session: the end is kept for a while, everything else goes. If it
-- is bare, nothing of it tells whose session it was.
local endSession

do
  -- keepEnd keeps the end of a session, so that its client can be told.
  local function keepEnd(s, t, cause, reason, actor, bare)
    local left = endedKept - math.max(0, at - t)
    if left <= 0 then
      forgetToken(s)
      return
    end
    call('SET', key('end:' .. s.id), packEnd(s, t, cause, reason, actor, bare), 'PX', left)
    call('PEXPIRE', key('tok:' .. s.token), left)
    if not bare then
      local mine = key('e:' .. s.user)
      call('ZADD', mine, t, s.id)
      call('ZREMRANGEBYSCORE', mine, '-inf', at - endedKept)
      call('PEXPIRE', mine, endedKept)
    end
  end

  function endSession(s, t, cause, reason, actor, bare)
    advance()
    call('DEL', key('s:' .. s.id))
    call('ZREM', key('login'), s.id)
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

-- findSession returns the id that a reference leads to; nil if it leads nowhere.
local function findSession(ref)
  if string.sub(ref, 1, 1) == 'T' then return call('GET', key('tok:' .. string.sub(ref, 2))) or nil end
  return string.sub(ref, 2)
end

-- endBy returns how a session ended that has a cutoff: it may have been past its
-- deadline before.
local function endBy(s, c)
  local t, cause = deadline(s)
  if t <= c.at then return t, cause, '', '' end
  return c.at, c.cause, c.reason, c.actor
end

-- endedReply returns what is kept of a session that ended: {'ended', id, end}, or
-- {'unknown'}.
local function endedReply(sid)
  local blob = call('GET', key('end:' .. sid))
  if not blob and cutoffs > 0 then
    local s = readSession(sid)
    local c = s and cutoffOf(s)
    if c then
      local t, cause, reason, actor = endBy(s, c)
      blob = packEnd(s, t, cause, reason, actor, c.bare)
    end
  end
  if not blob or struct.unpack('>I8', blob) + endedKept <= at then return {'unknown'} end
  return {'ended', sid, blob}
end

-- Sessions as they are read. Needs env.lua.
--
-- Gives packSession, unpackSession, readSession (an end may be noted), loadSession (live),
-- findSession, tokenPlace, deadline, liveReply and endedReply. Of ends: packEnd. Of cutoffs: readCutoff,
-- cutoffOf and endBy.

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
  local blob = call('HGET', key('sessions'), sid)
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

-- tokenPlace returns the hash and the field that lead from the token of a live session to its
-- id. The hashes are many and small, and so are their fields: Redis packs them, which takes
-- less than half of what a key of each token would.
local function tokenPlace(token) return key('tokens:' .. string.sub(token, 1, 1)), string.sub(token, 2) end

-- findSession returns the id that a reference leads to; nil if it leads nowhere. Tokens of
-- sessions that ended are keys of their own, as these expire.
local function findSession(ref)
  if string.sub(ref, 1, 1) ~= 'T' then return string.sub(ref, 2) end
  local token = string.sub(ref, 2)
  return call('HGET', tokenPlace(token)) or call('GET', key('tok:' .. token)) or nil
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

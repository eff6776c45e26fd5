-- Who was seen when, and what of it has been announced. Needs bytes.lua and event.lua.
-- Gives isAnnounced, offlineAt, announceOffline, recordBeat, setGone, announceDue and
-- endLogoutGrace.
--
-- Sweeps announce users offline in the order of their last signs of life: all who were
-- last seen before the second offlineBefore, and of that second those up to the user
-- offlineUser. Two kinds of users stand apart:
--
-- announced  a set of users who were announced offline before their turn
-- loggedout  an order of users who logged out, by the instant (ms) at which they are
--            announced offline unless they are seen before

-- isAnnounced reports whether the events say that the user is offline. last is when they
-- were last seen, 0 for never, negative if they are gone.
local function isAnnounced(user, last)
  if last < offlineBefore then return true end
  if last == offlineBefore and offlineUser ~= '' and not isBefore(offlineUser, user) then return true end
  return call('SISMEMBER', key('announced'), user) == 1
end

-- offlineAt is the first second in which a user no longer counts, ms.
local function offlineAt(last) return effectiveDeadline((last + offlineWindow + 1) * 1000) end

-- announceOffline tells that a user's window has passed.
local function announceOffline(user, last) emit('pres', USER_OFFLINE, user, {at = offlineAt(last)}) end

local someLoggedOut

-- logoutDueAt returns when a user who logged out is announced offline; nil if they did
-- not log out, or that has been told.
local function logoutDueAt(user)
  if someLoggedOut == nil then someLoggedOut = call('EXISTS', key('loggedout')) == 1 end
  return someLoggedOut and tonumber(call('ZSCORE', key('loggedout'), user) or nil) or nil
end

-- announceReturn tells of a user who was offline and is seen again: that they went, if
-- nobody has told it, and that they are back. If they logged out and are seen again
-- within the grace, there is nothing to tell.
local function announceReturn(user, last)
  if last > 0 then
    if not isAnnounced(user, last) then announceOffline(user, last) end
    call('SREM', key('announced'), user)
  else
    local due = logoutDueAt(user)
    if due then
      call('ZREM', key('loggedout'), user)
      if at < due then return end
      emit('pres', USER_OFFLINE, user, {at = due})
    end
  end
  emit('pres', USER_ONLINE, user)
end

-- recordBeat records a sign of life of users, each named once.
local function recordBeat(users)
  local seen, sec = key('seen'), num(math.floor(at / 1000)) -- as text, which calls take as it is
  advance()
  local add = {}
  for i = 1, #users do
    add[2 * i - 1], add[2 * i] = sec, users[i]
  end

  -- Who was offline before this is announced behind it.
  local line = onlineSince(offlineWindow)
  local before = presenceEvents == 1 and call('ZMSCORE', seen, unpack(users))
  call('ZADD', seen, 'GT', unpack(add))
  local visible = #users
  if anyHidden() then
    call('ZADD', key('hidden'), 'XX', 'GT', unpack(add))
    for _, score in ipairs(call('ZMSCORE', key('hidden'), unpack(users))) do
      if score then visible = visible - 1 end
    end
  end
  beats = beats + visible
  setState('beats', num(beats))
  if presenceEvents == 0 then return end
  for i = 1, #users do
    local last = tonumber(before[i] or 0)
    if last < line or last < offlineBefore then announceReturn(users[i], last) end
  end
end

-- endLogoutGrace tells that a user who logged out is offline, if that has not been told:
-- they do not come back within the grace.
local function endLogoutGrace(user)
  local due = logoutDueAt(user)
  if not due then return end
  call('ZREM', key('loggedout'), user)
  if presenceEvents == 1 then emit('pres', USER_OFFLINE, user, {at = math.min(at, due)}) end
end

-- setGone makes a user gone: offline until their next sign of life.
local function setGone(user, cause)
  local last = tonumber(call('ZSCORE', key('seen'), user) or 0)
  if last <= 0 then
    if cause ~= 'logout' then endLogoutGrace(user) end
    return
  end
  if presenceEvents == 1 and not isAnnounced(user, last) then
    if last < onlineSince(offlineWindow) then
      announceOffline(user, last)
    elseif cause == 'logout' and logoutGrace > 0 then
      call('ZADD', key('loggedout'), num(math.min(at + logoutGrace, offlineAt(last))), user)
    else
      emit('pres', USER_OFFLINE, user)
    end
  end
  call('SREM', key('announced'), user)
  call('ZADD', key('seen'), -last, user)
  if anyHidden() then call('ZADD', key('hidden'), 'XX', -last, user) end
end

-- announceDue tells what is due of one user, so that something else can be told behind
-- it. It returns whether they stand as online then.
local function announceDue(user)
  if presenceEvents == 0 then return false end
  local last = tonumber(call('ZSCORE', key('seen'), user) or 0)
  local due = logoutDueAt(user)
  if due then
    if at < due then return true end
    call('ZREM', key('loggedout'), user)
    emit('pres', USER_OFFLINE, user, {at = due})
    return false
  end
  if last <= 0 or isAnnounced(user, last) then return false end
  if last >= onlineSince(offlineWindow) then return true end
  announceOffline(user, last)
  call('SADD', key('announced'), user)
  return false
end

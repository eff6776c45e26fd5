-- Who was seen when, and what of it has been announced. Needs bytes.lua and
-- event.lua.
--
-- Silence is announced by sweeps, in the order of last signs of life: up to the
-- second silent, and of that second up to the user quiet. Two kinds of users
-- stand apart:
--
-- told     a set of users whose silence was announced before its turn
-- leaving  a zset of users who logged out, by the instant (ms) at which they are
--          announced offline unless they are heard before

-- isAnnounced reports whether the user stands as offline in the events. last is
-- when they were last seen, 0 for never, negative if gone.
local function isAnnounced(user, last)
  if last < silent then return true end
  if last == silent and quiet ~= '' and not isBefore(quiet, user) then return true end
  return call('SISMEMBER', key('announced'), user) == 1
end

-- silentAt is the first second in which a user no longer counts, ms.
local function silentAt(last) return extend((last + announced + 1) * 1000) end

-- announceSilence tells that a user fell silent.
local function announceSilence(user, last) emit('pres', USER_OFFLINE, user, {at = silentAt(last)}) end

local someLeave

-- leavingAt returns when one who logged out is announced offline; nil if they
-- are not on their way out.
local function leavingAt(user)
  if someLeave == nil then someLeave = call('EXISTS', key('loggedout')) == 1 end
  return someLeave and tonumber(call('ZSCORE', key('loggedout'), user) or nil) or nil
end

-- returns announces what became of a user who was offline and is heard again:
-- that they went, if it has not been told, and that they are back. One who logged
-- out and is heard within the grace never went.
local function comesBack(user, last)
  if last > 0 then
    if not isAnnounced(user, last) then announceSilence(user, last) end
    call('SREM', key('announced'), user)
  else
    local due = leavingAt(user)
    if due then
      call('ZREM', key('loggedout'), user)
      if at < due then return end
      emit('pres', USER_OFFLINE, user, {at = due})
    end
  end
  emit('pres', USER_ONLINE, user)
end

-- hear is a sign of life of users, each named once.
local function hear(users)
  local seen, sec = key('seen'), num(math.floor(at / 1000)) -- as text, which calls take as it is
  advance()
  local add = {}
  for i = 1, #users do
    add[2 * i - 1], add[2 * i] = sec, users[i]
  end
  local line = since(announced)
  local before = presence == 1 and call('ZMSCORE', seen, unpack(users))
  call('ZADD', seen, 'GT', unpack(add))
  if anyHidden() then call('ZADD', key('hidden'), 'XX', 'GT', unpack(add)) end
  if presence == 0 then return end
  for i = 1, #users do
    local last = tonumber(before[i] or 0)
    if last < line or last < silent then comesBack(users[i], last) end
  end
end

-- hide makes a user gone: offline until their next sign of life.
local function hide(user, cause)
  local last = tonumber(call('ZSCORE', key('seen'), user) or 0)
  if last <= 0 then return end
  if presence == 1 and not isAnnounced(user, last) then
    if last < since(announced) then
      announceSilence(user, last)
    elseif cause == 'logout' and leave > 0 then
      call('ZADD', key('loggedout'), num(math.min(at + leave, silentAt(last))), user)
    else
      emit('pres', USER_OFFLINE, user)
    end
  end
  call('SREM', key('announced'), user)
  call('ZADD', key('seen'), -last, user)
  if anyHidden() then call('ZADD', key('hidden'), 'XX', -last, user) end
end

-- settleUser announces what is due of one user, so that something else can be
-- announced behind it, and returns whether they stand as online then.
local function settleUser(user)
  if presence == 0 then return false end
  local last = tonumber(call('ZSCORE', key('seen'), user) or 0)
  local due = leavingAt(user)
  if due then
    if at < due then return true end
    call('ZREM', key('loggedout'), user)
    emit('pres', USER_OFFLINE, user, {at = due})
    return false
  end
  if last <= 0 or isAnnounced(user, last) then return false end
  if last >= since(announced) then return true end
  announceSilence(user, last)
  call('SADD', key('announced'), user)
  return false
end

-- Events of the streams log and pres, one for each family. Needs invisible.lua. Gives emit
-- and streamOf.

-- As enginekit names them.
local SESSION_STARTED, SESSION_ENDED, USER_ONLINE, USER_OFFLINE = 0, 1, 2, 3
local USER_BANNED, USER_UNBANNED, USER_ERASED = 4, 5, 6
local ARCHIVE_COMPLETED, ARCHIVE_FAILED = 7, 8
local FOR_ALL, FOR_ADMIN, FOR_PUBLIC = 0, 1, 2

-- countFlow counts a login or an end that the public is told of: in the places of a
-- sample, of which the second is that of beats.
local countFlow

do
  local places = {logout = 3, kicked = 4, replaced = 5, expired = 6, lifetime = 7, banned = 8, erased = 9}

  function countFlow(kind, cause)
    local place = kind == SESSION_STARTED and 1 or places[cause]
    flow[place] = (flow[place] or 0) + 1
  end
end

-- streamOf is the stream that holds events of a type.
local function streamOf(kind)
  return (kind == USER_ONLINE or kind == USER_OFFLINE) and 'pres' or 'log'
end

-- emit appends an event. Its place is Redis's time in microseconds, made unique
-- and ascending over both streams of the partition, and later than every place that
-- readers have come to in other partitions: see event_tail.go.
local function emit(stream, kind, user, opt)
  opt = opt or {}
  if not micros then
    local t = call('TIME')
    micros = t[1] * 1000000 + t[2]
  end
  lastEvent = math.max(lastEvent + 1, micros)
  setState('lastevent', num(lastEvent))
  local audience = opt.audience or (user ~= '' and invisible(user) and FOR_ADMIN) or FOR_ALL
  if kind <= SESSION_ENDED and audience ~= FOR_ADMIN then countFlow(kind, opt.cause) end
  if audience ~= FOR_ADMIN then setState('lastpublic', num(lastEvent)) end
  local sid, cause, reason, actor = opt.sid or '', opt.cause or '', opt.reason or '', opt.actor or ''
  call('XADD', key(stream), num(lastEvent) .. '-0', 'e', struct.pack('>BBI8Bc0Bc0Bc0I2c0Bc0',
    kind, audience, opt.at or at, #user, user, #sid, sid, #cause, cause, #reason, reason, #actor, actor))
end

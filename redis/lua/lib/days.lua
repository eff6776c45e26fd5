-- Marks: users by number, days as sets of numbers. Needs days_index.lua.
--
-- Gives, of numbers: numberFor; those that are released are in days_release.lua. Of
-- sets: addTo, removeFrom, contains, countMembers, isBitmap, toBitmap, dense, dayKey,
-- daySetsOf and monthMapOf. Of marks: mark and unmark, which do all that goes with one;
-- firstDay, setFirstDays, lowerFirstDay, invalidateFigures, invalidateAllFigures,
-- noteMarkChange and noteArchiveChange for scripts that do it for many; monthOf. Of
-- offloaded days: hasArchivedMarks and isOffloaded.
--
-- With a mark go its user's first day, of the kind and of all kinds; the cached figures
-- that count it; and the user's map of the month, which becomes dirty: it has changed
-- since it was archived.

-- What a script has found out, so that it need not ask again.
local numbers -- how many have been given
local noneFree = false -- no number waits to be given again
local bitmaps = {} -- name of a set -> whether it is a bitmap

-- numbersGiven returns how many numbers have been given.
local function numbersGiven()
  numbers = numbers or tonumber(call('HGET', part, 'numbers') or 0)
  return numbers
end

-- numberFor returns the user's number. A user without one is given one.
local function numberFor(user)
  local n = call('HGET', key('num'), user)
  if n then return tonumber(n) end
  n = not noneFree and call('SPOP', key('free'))
  if n then
    n = tonumber(n)
  else
    noneFree = true
    numbers = call('HINCRBY', part, 'numbers', 1)
    n = numbers - 1
  end
  call('HSET', key('num'), user, n)
  call('HSET', key('ids:' .. math.floor(n / 64)), n, user)
  return n
end

-- dense reports whether a set of numbers is smaller as a bitmap. A set has up to 512
-- members in 4 bytes each, more in some 56; a bitmap takes a bit for each number there
-- is.
local function dense(members, given)
  if members <= 512 then return members * 32 > given end
  return members * 448 > given
end

local function isBitmap(name)
  if bitmaps[name] == nil then bitmaps[name] = call('TYPE', name).ok == 'string' end
  return bitmaps[name]
end

local function removeSet(name)
  call('DEL', name)
  bitmaps[name] = nil
end

local function toBitmap(name)
  local members = call('SMEMBERS', name)
  call('DEL', name)
  for _, m in ipairs(members) do call('SETBIT', name, m, 1) end
  bitmaps[name] = true
end

-- countMembers counts new members of a set in its index, and turns the set into a bitmap
-- once that is smaller.
local function countMembers(name, index, field, new)
  local members = call('HINCRBY', index, field, new)
  if members == new then enterField(index, field) end
  if not isBitmap(name) and dense(members, numbersGiven()) then toBitmap(name) end
end

-- addTo adds a number to a set; false if it was there.
local function addTo(name, index, field, n)
  if isBitmap(name) then
    if call('SETBIT', name, n, 1) == 1 then return false end
  elseif call('SADD', name, n) == 0 then
    return false
  end
  countMembers(name, index, field, 1)
  return true
end

local function contains(name, n)
  if isBitmap(name) then return call('GETBIT', name, n) == 1 end
  return call('SISMEMBER', name, n) == 1
end

-- removeFrom removes a number from a set, and the set with its last; false if it was
-- not there.
local function removeFrom(name, index, field, n)
  if not contains(name, n) then return false end
  if isBitmap(name) then call('SETBIT', name, n, 0) else call('SREM', name, n) end
  if call('HINCRBY', index, field, -1) <= 0 then
    call('HDEL', index, field)
    leaveField(index, field)
    removeSet(name)
  end
  return true
end

local function dayKey(field) return key('day:' .. field) end

-- monthOf returns the month of a day, as year*100 + month, and the day's place
-- in it from 1 (Howard Hinnant: chrono-compatible low-level date algorithms).
local function monthOf(day)
  local z = day + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return year * 100 + month, doy - math.floor((153 * mp + 2) / 5) + 1
end

-- firstDay returns the first day of a number, -1 if there is none. First days stand in a
-- string for each kind, and one for all (''): 4 bytes for each number, the day + 1, 0
-- for none.
local function firstDay(kind, n)
  local b = call('GETRANGE', key('first:' .. kind), n * 4, n * 4 + 3)
  return #b == 4 and struct.unpack('>I4', b) - 1 or -1
end

local hasFirsts = {} -- kinds that this script has entered in firsts

-- setFirstDays sets the first days of consecutive numbers, from n on.
local function setFirstDays(kind, n, ...)
  local packed = {...}
  for i, day in ipairs(packed) do packed[i] = struct.pack('>I4', day + 1) end
  call('SETRANGE', key('first:' .. kind), n * 4, table.concat(packed))
  if hasFirsts[kind] then return end
  hasFirsts[kind] = true
  call('SADD', key('firsts'), kind)
end

-- lowerFirstDay makes a day the first one of a number, if no earlier day is.
local function lowerFirstDay(kind, n, day)
  local f = firstDay(kind, n)
  if f < 0 or day < f then setFirstDays(kind, n, day) end
end

-- Cached figures of past days stand with the epoch of the partition in which they were
-- made. They are stale once the epoch is another one: so a new epoch makes all stale at
-- once, and one that no partition comes to makes some stale.
local NO_EPOCH = '\255\255\255\255'

local noFigures
local invalidated = {} -- kind -> days whose figures this script has made stale

-- invalidateFigures makes the cached figures stale that count a mark on a day: those of
-- the day itself and of the 30 days behind it, for its kind and for all kinds.
local function invalidateFigures(kind, day)
  local figures, fields, put = key('figures'), {}, {}
  if noFigures == nil then noFigures = call('EXISTS', figures) == 0 end
  if noFigures then return end
  invalidated[kind] = invalidated[kind] or {}
  local met = invalidated[kind]
  for d = day, day + 30 do
    if not met[d] then
      met[d] = true
      fields[#fields + 1] = kind .. ':' .. d
      fields[#fields + 1] = ':' .. d
    end
  end
  if #fields == 0 then return end
  for i, v in ipairs(call('HMGET', figures, unpack(fields))) do
    if v and string.sub(v, 21) ~= NO_EPOCH then
      put[#put + 1] = fields[i]
      put[#put + 1] = string.sub(v, 1, 20) .. NO_EPOCH
    end
  end
  if #put > 0 then call('HSET', figures, unpack(put)) end
end

-- invalidateAllFigures makes all cached figures stale.
local function invalidateAllFigures() call('HINCRBY', part, 'epoch', 1) end

-- stampField sets a field of the partition to the time in microseconds. So no value comes
-- again, not even when a failover lost the latest ones.
local function stampField(field)
  local t = call('TIME')
  local value = math.max(tonumber(call('HGET', part, field) or 0) + 1, t[1] * 1000000 + t[2])
  call('HSET', part, field, num(value))
  return num(value)
end

local marksChanged = false

-- noteMarkChange notes, once a script, that marks have changed: figures that were made
-- before are not cached.
local function noteMarkChange()
  if not marksChanged then
    marksChanged = true
    stampField('markchange')
  end
end

local someMarkless

-- applyMarkEffects does what goes with each change of a mark: its map is dirty, figures
-- that count it are stale, and the number has marks.
local function applyMarkEffects(n, kind, day)
  if someMarkless == nil then someMarkless = call('EXISTS', key('markless')) == 1 end
  if someMarkless then call('ZREM', key('markless'), n) end
  local month = kind .. ':' .. monthOf(day)
  addTo(key('dirty:' .. month), key('dirtymonths'), month, n)
  invalidateFigures(kind, day)
  noteMarkChange()
end

-- mark adds a mark; false if it was there.
local function mark(n, kind, day)
  day = tonumber(day)
  local field = kind .. ':' .. day
  if not addTo(dayKey(field), key('days'), field, n) then return false end
  lowerFirstDay(kind, n, day)
  lowerFirstDay('', n, day)
  applyMarkEffects(n, kind, day)
  return true
end

local daysLookedAt = 0 -- by all calls of findFirstDay

-- findFirstDay finds the first day of a number among the days that are here, -1 if there
-- is none.
local function findFirstDay(kind, n)
  local best = -1
  if kind == '' then -- the first days of all kinds are known, that of the removed mark too
    for _, k in ipairs(call('SMEMBERS', key('firsts'))) do
      local f = k ~= '' and firstDay(k, n) or -1
      if f >= 0 and (best < 0 or f < best) then best = f end
    end
    return best
  end
  local from, line = '-inf', key('days:' .. kind)
  while true do
    local some = call('ZRANGEBYSCORE', line, from, '+inf', 'LIMIT', 0, 100)
    for _, d in ipairs(some) do
      daysLookedAt = daysLookedAt + 1
      if contains(dayKey(kind .. ':' .. d), n) then return tonumber(d) end
    end
    if #some < 100 then return -1 end
    from = '(' .. some[100]
  end
end

-- noteArchiveChange notes that something happened to marks that may be in the archive, and
-- returns the stamp. An engine that read the archive before the latest such change has to
-- read it again. Each offloaded day stands in the hash offloaded with such a stamp.
local function noteArchiveChange() return stampField('archivechange') end

local function hasArchivedMarks(n) return call('GETBIT', key('hasarchived'), n) == 1 end

-- isOffloaded reports whether the archive has marks of a day. It may have one of any
-- number, also of one without offloaded marks: maps are copied before the day goes.
local function isOffloaded(field) return call('HEXISTS', key('offloaded'), field) == 1 end

-- unmark removes a mark, and returns whether it was here. If the day was the user's first,
-- the next one becomes that. archived has, by kind and for all kinds (''), the user's first
-- day in the archive.
local function unmark(n, kind, day, archived)
  local field = kind .. ':' .. day
  local there = removeFrom(dayKey(field), key('days'), field, n)
  if there then applyMarkEffects(n, kind, day) end
  if isOffloaded(field) then
    invalidateFigures(kind, day)
    noteMarkChange()
    noteArchiveChange()
  elseif not there then
    return false
  end
  for _, k in ipairs({kind, ''}) do
    if firstDay(k, n) == day then
      local here, other = findFirstDay(k, n), archived[k] or -1
      setFirstDays(k, n, (here < 0 or (other >= 0 and other < here)) and other or here)
    end
  end
  return there
end

-- daySetsOf lists the sets of a month's days, with the bit that each day has in a map.
local function daySetsOf(kind, monthStart, days)
  local out = {}
  for d = 0, days - 1 do
    local name = dayKey(kind .. ':' .. (monthStart + d))
    local type = call('TYPE', name).ok
    if type ~= 'none' then out[#out + 1] = {name, type == 'string' and 'GETBIT' or 'SISMEMBER', 2 ^ d} end
  end
  return out
end

-- monthMapOf returns a number's map of a month: a bit for each day with a mark.
local function monthMapOf(n, sets)
  local map = 0
  for _, s in ipairs(sets) do
    if call(s[2], s[1], n) == 1 then map = map + s[3] end
  end
  return map
end

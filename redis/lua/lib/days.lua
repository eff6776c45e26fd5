-- Marks: users by number, days as sets of numbers. With a mark go the day a user
-- was first seen on, of the kind and of all, and the note that the map of the
-- user's month has changed since it was archived.

-- What a script has found out, so that it need not ask again.
local numbers -- how many have been given
local noneFree = false
local bitmaps = {} -- name of a set -> whether it is a bitmap

local function numbersGiven()
  numbers = numbers or tonumber(call('HGET', part, 'numbers') or 0)
  return numbers
end

-- number returns the user's number, giving them one if need be.
local function number(user)
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

-- A set of numbers is a set while that is smaller: up to 512 members in 4 bytes
-- each, past that in some 56; a bitmap takes a bit for each number there is.
local function dense(members, given)
  if members <= 512 then return members * 32 > given end
  return members * 448 > given
end

local function isBitmap(name)
  if bitmaps[name] == nil then bitmaps[name] = call('TYPE', name).ok == 'string' end
  return bitmaps[name]
end

local function remove(name)
  call('DEL', name)
  bitmaps[name] = nil
end

local function toBitmap(name)
  local members = call('SMEMBERS', name)
  call('DEL', name)
  for _, m in ipairs(members) do call('SETBIT', name, m, 1) end
  bitmaps[name] = true
end

-- count counts in an index of sets how many members have come into one.
local function count(name, index, field, new)
  local members = call('HINCRBY', index, field, new)
  if members == new then enterField(index, field) end
  if not isBitmap(name) and dense(members, numbersGiven()) then toBitmap(name) end
end

-- add puts a number into a set; false if it was there.
local function add(name, index, field, n)
  if isBitmap(name) then
    if call('SETBIT', name, n, 1) == 1 then return false end
  elseif call('SADD', name, n) == 0 then
    return false
  end
  count(name, index, field, 1)
  return true
end

local function has(name, n)
  if isBitmap(name) then return call('GETBIT', name, n) == 1 end
  return call('SISMEMBER', name, n) == 1
end

-- take removes a number from a set, and the set with its last; false if it was
-- not there.
local function take(name, index, field, n)
  if not has(name, n) then return false end
  if isBitmap(name) then call('SETBIT', name, n, 0) else call('SREM', name, n) end
  if call('HINCRBY', index, field, -1) <= 0 then
    call('HDEL', index, field)
    leaveField(index, field)
    remove(name)
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

-- First days stand in a string for each kind, and one for all: 4 bytes for each
-- number, the day + 1, 0 for none.
local function first(kind, n)
  local b = call('GETRANGE', key('first:' .. kind), n * 4, n * 4 + 3)
  return #b == 4 and struct.unpack('>I4', b) - 1 or -1
end

local hasFirsts = {} -- kinds that this script has entered

-- setFirst sets the first days of numbers that follow each other, from one on.
local function setFirst(kind, n, ...)
  local packed = {...}
  for i, day in ipairs(packed) do packed[i] = struct.pack('>I4', day + 1) end
  call('SETRANGE', key('first:' .. kind), n * 4, table.concat(packed))
  if hasFirsts[kind] then return end
  hasFirsts[kind] = true
  call('SADD', key('firsts'), kind)
end

local function notLaterThan(kind, n, day)
  local f = first(kind, n)
  if f < 0 or day < f then setFirst(kind, n, day) end
end

-- Figures of closed days are kept with the epoch of the partition in which they
-- were made. They are stale once it is another: so all are made stale at once by
-- a new epoch, and some by one that no partition comes to.
local NO_EPOCH = '\255\255\255\255'

local noneClosed
local reopened = {} -- days of each kind of which this script has dropped the figures

-- reopen makes the figures of closed days stale that a mark on a day is part of.
local function reopen(kind, day)
  local closed, fields, put = key('figures'), {}, {}
  if noneClosed == nil then noneClosed = call('EXISTS', closed) == 0 end
  if noneClosed then return end
  reopened[kind] = reopened[kind] or {}
  local met = reopened[kind]
  for d = day, day + 30 do
    if not met[d] then
      met[d] = true
      fields[#fields + 1] = kind .. ':' .. d
      fields[#fields + 1] = ':' .. d
    end
  end
  if #fields == 0 then return end
  for i, v in ipairs(call('HMGET', closed, unpack(fields))) do
    if v and string.sub(v, 21) ~= NO_EPOCH then
      put[#put + 1] = fields[i]
      put[#put + 1] = string.sub(v, 1, 20) .. NO_EPOCH
    end
  end
  if #put > 0 then call('HSET', closed, unpack(put)) end
end

-- reopenAll makes the figures of all closed days stale.
local function reopenAll() call('HINCRBY', part, 'epoch', 1) end

-- renew gives a field of the partition the time in microseconds, so that no value
-- comes again, not even when a failover took the latest back.
local function renew(field)
  local t = call('TIME')
  local value = math.max(tonumber(call('HGET', part, field) or 0) + 1, t[1] * 1000000 + t[2])
  call('HSET', part, field, num(value))
  return num(value)
end

-- countChange tells, once a script, that figures made before may not be kept.
local marksChanged = false

local function countChange()
  if not marksChanged then
    marksChanged = true
    renew('markchange')
  end
end

local someBare

local function changedMark(n, kind, day)
  if someBare == nil then someBare = call('EXISTS', key('markless')) == 1 end
  if someBare then call('ZREM', key('markless'), n) end
  local month = kind .. ':' .. monthOf(day)
  add(key('dirty:' .. month), key('dirtymonths'), month, n)
  reopen(kind, day)
  countChange()
end

-- mark notes that a number was there; false if that stood already.
local function mark(n, kind, day)
  day = tonumber(day)
  local field = kind .. ':' .. day
  if not add(dayKey(field), key('days'), field, n) then return false end
  notLaterThan(kind, n, day)
  notLaterThan('', n, day)
  changedMark(n, kind, day)
  return true
end

-- refirst finds the first day of a number among the days that are here, -1 if
-- there is none. It looks at no more days than there have been.
local looked = 0

local function refirst(kind, n)
  local best = -1
  if kind == '' then -- each kind has its first day noted, that taken back just now too
    for _, k in ipairs(call('SMEMBERS', key('firsts'))) do
      local f = k ~= '' and first(k, n) or -1
      if f >= 0 and (best < 0 or f < best) then best = f end
    end
    return best
  end
  local from, line = '-inf', key('days:' .. kind)
  while true do
    local some = call('ZRANGEBYSCORE', line, from, '+inf', 'LIMIT', 0, 100)
    for _, d in ipairs(some) do
      looked = looked + 1
      if has(dayKey(kind .. ':' .. d), n) then return tonumber(d) end
    end
    if #some < 100 then return -1 end
    from = '(' .. some[100]
  end
end

-- The days that left this partition stand in the hash gone, each with a stamp:
-- when something happened last to marks that may be in the archive. Whoever has
-- read them back before the latest of it has to do so again.
local function touchRecalls() return renew('archivechange') end

local function isAway(n) return call('GETBIT', key('hasarchived'), n) == 1 end

-- inArchive reports whether the archive may have a mark, or have been read when
-- it had: also of a number that is not away, as the day may have stayed when its
-- map was copied.
local function inArchive(field) return call('HEXISTS', key('offloaded'), field) == 1 end

-- unmark takes a mark back, and says whether it was here. A day that was the
-- user's first gives way to the next one, also of those that archived has: by
-- kind, and of '' all, the first one in the archive.
local function unmark(n, kind, day, archived)
  local field = kind .. ':' .. day
  local there = take(dayKey(field), key('days'), field, n)
  if there then changedMark(n, kind, day) end
  if inArchive(field) then
    reopen(kind, day)
    countChange()
    touchRecalls()
  elseif not there then
    return false
  end
  for _, k in ipairs({kind, ''}) do
    if first(k, n) == day then
      local here, other = refirst(k, n), archived[k] or -1
      setFirst(k, n, (here < 0 or (other >= 0 and other < here)) and other or here)
    end
  end
  return there
end

-- A number of whom no mark is left is given back step by step, as it may stand in
-- the sets of any number of days. Two orders have the numbers on their way, each with
-- the day or month at which the next step begins:
--
-- bare             whose user has no marks, but stays known while the archive has to
--                  hear of it, that is while the number is among the changed of a month
-- wipe:days        whose user was erased: it is taken out of the days,
-- wipe:changed     and then of the changed

-- free gives a number to whoever comes next.
local function free(n)
  if call('EXISTS', key('num'), key('wipe:days'), key('wipe:dirtymonths')) > 0 then
    call('SADD', key('free'), n)
    noneFree = false
    return
  end
  for _, kind in ipairs(call('SMEMBERS', key('firsts'))) do call('DEL', key('first:' .. kind), key('offloaded:' .. kind)) end
  call('DEL', key('firsts'), key('free'), key('hasarchived'), key('offloaded'))
  call('UNLINK', key('figures'))
  call('HDEL', part, 'numbers')
  numbers, hasFirsts, noneClosed = nil, {}, nil
end

local function forgetFirsts(n)
  for _, kind in ipairs(call('SMEMBERS', key('firsts'))) do
    if first(kind, n) >= 0 then setFirst(kind, n, -1) end
  end
end

-- offer notes a number whose user may have no marks left, here or in the archive.
local function offer(n)
  if isAway(n) or first('', n) >= 0 then return end
  call('ZADD', key('markless'), '-inf', n)
  someBare = true
end

-- giveBack takes a step with the first of the bare numbers, and returns how many
-- months it looked at; none if there are no bare numbers.
local function giveBack(budget)
  local place = call('ZRANGE', key('markless'), 0, 0, 'WITHSCORES')
  if #place == 0 then return 0 end
  local n, fields, on = tonumber(place[1]), someFields(key('dirtymonths'), '', place[2], '+inf', budget)
  for _, f in ipairs(fields) do
    if has(key('dirty:' .. f[1] .. ':' .. f[2]), n) then -- it comes again when that month has been archived
      call('ZREM', key('markless'), n)
      return #fields + 1
    end
  end
  if on then
    call('ZADD', key('markless'), on, n)
    return #fields + 1
  end
  call('ZREM', key('markless'), n)
  local bucket = key('ids:' .. math.floor(n / 64))
  local user = call('HGET', bucket, n)
  if user then
    call('HDEL', key('num'), user)
    call('HDEL', bucket, n)
    forgetFirsts(n)
    free(n)
  end
  return #fields + 1
end

-- wipe takes a step with a number whose user was erased, and returns how many days
-- or months it looked at.
local function wipe(budget)
  local of = 'days'
  local place = call('ZRANGE', key('wipe:days'), 0, 0, 'WITHSCORES')
  if #place == 0 then
    of = 'dirtymonths'
    place = call('ZRANGE', key('wipe:dirtymonths'), 0, 0, 'WITHSCORES')
    if #place == 0 then return 0 end
  end
  local order, n = key('wipe:' .. of), tonumber(place[1])
  local fields, on = someFields(key(of), '', place[2], '+inf', budget)
  for _, f in ipairs(fields) do
    local field = f[1] .. ':' .. f[2]
    if of == 'dirtymonths' then
      take(key('dirty:' .. field), key(of), field, n)
    elseif take(dayKey(field), key(of), field, n) then
      reopen(f[1], f[2])
      countChange()
    end
  end
  if on then
    call('ZADD', order, on, n)
    return #fields + 1
  end
  call('ZREM', order, n)
  if of == 'days' then call('ZADD', key('wipe:dirtymonths'), '-inf', n) else free(n) end
  return #fields + 1
end

-- tidyNumbers does so with whatever numbers are on their way.
local function tidyNumbers(budget)
  while budget > 0 do
    local n = wipe(budget)
    if n == 0 then n = giveBack(budget) end
    if n == 0 then return false end
    budget = budget - n
  end
  return true
end

-- setsOf lists the sets of the days of a month that there are, with the bit of
-- each day in a map.
local function setsOf(kind, firstDay, days)
  local out = {}
  for d = 0, days - 1 do
    local name = dayKey(kind .. ':' .. (firstDay + d))
    local type = call('TYPE', name).ok
    if type ~= 'none' then out[#out + 1] = {name, type == 'string' and 'GETBIT' or 'SISMEMBER', 2 ^ d} end
  end
  return out
end

-- mapOf returns a number's map of a month.
local function mapOf(n, sets)
  local map = 0
  for _, s in ipairs(sets) do
    if call(s[2], s[1], n) == 1 then map = map + s[3] end
  end
  return map
end

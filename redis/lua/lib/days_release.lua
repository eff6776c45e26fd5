-- Numbers that no user needs any more are released, to be given again. Needs days.lua.
--
-- Gives: clearFirstDays, noteIfMarkless and releaseNumbers.

-- Releasing a number takes many steps, as it may stand in the sets of any number of days.
-- Three orders have the numbers to be released, each with the day or month at which the
-- next step begins:
--
-- markless          their user has no marks, here or in the archive. The number waits until
--                   it is dirty in no month, as the archive has to be told that first
-- wipe:days         their user was erased: they are removed from the days,
-- wipe:dirtymonths  and then from the dirty months

-- clearFirstDays forgets the first days of a number. noteIfMarkless adds a number to
-- markless if it has no marks left. releaseNumbers takes steps with all of them, and
-- returns whether there is more to do.
local clearFirstDays, noteIfMarkless, releaseNumbers

do
  -- releaseNumber lets the next new user have a number. With the last number of all, what
  -- is left of days goes.
  local function releaseNumber(n)
    if call('EXISTS', key('num'), key('wipe:days'), key('wipe:dirtymonths')) > 0 then
      call('SADD', key('free'), n)
      noneFree = false
      return
    end
    for _, kind in ipairs(call('SMEMBERS', key('firsts'))) do call('DEL', key('first:' .. kind), key('offloaded:' .. kind)) end
    call('DEL', key('firsts'), key('free'), key('hasarchived'), key('offloaded'))
    call('UNLINK', key('figures'))
    call('HDEL', part, 'numbers')
    numbers, hasFirsts, noFigures = nil, {}, nil
  end

  function clearFirstDays(n)
    for _, kind in ipairs(call('SMEMBERS', key('firsts'))) do
      if firstDay(kind, n) >= 0 then setFirstDays(kind, n, -1) end
    end
  end

  function noteIfMarkless(n)
    if hasArchivedMarks(n) or firstDay('', n) >= 0 then return end
    call('ZADD', key('markless'), '-inf', n)
    someMarkless = true
  end

  -- releaseMarkless takes a step with the first number of markless, and returns how many
  -- months it looked at; 0 if there is none. A number that is dirty in a month comes again
  -- when that month has been archived.
  local function releaseMarkless(budget)
    local place = call('ZRANGE', key('markless'), 0, 0, 'WITHSCORES')
    if #place == 0 then return 0 end
    local n, fields, on = tonumber(place[1]), someFields(key('dirtymonths'), '', place[2], '+inf', budget)
    for _, f in ipairs(fields) do
      if contains(key('dirty:' .. f[1] .. ':' .. f[2]), n) then
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
      clearFirstDays(n)
      releaseNumber(n)
    end
    return #fields + 1
  end

  -- wipeErased takes a step with a number of wipe:days, else of wipe:dirtymonths, and
  -- returns how many days or months it looked at; 0 if there is none.
  local function wipeErased(budget)
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
        removeFrom(key('dirty:' .. field), key(of), field, n)
      elseif removeFrom(dayKey(field), key(of), field, n) then
        invalidateFigures(f[1], f[2])
        noteMarkChange()
      end
    end
    if on then
      call('ZADD', order, on, n)
      return #fields + 1
    end
    call('ZREM', order, n)
    if of == 'days' then call('ZADD', key('wipe:dirtymonths'), '-inf', n) else releaseNumber(n) end
    return #fields + 1
  end

  function releaseNumbers(budget)
    while budget > 0 do
      local n = wipeErased(budget)
      if n == 0 then n = releaseMarkless(budget) end
      if n == 0 then return false end
      budget = budget - n
    end
    return true
  end
end

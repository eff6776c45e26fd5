-- Marks: users by number, days as sets of numbers.

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

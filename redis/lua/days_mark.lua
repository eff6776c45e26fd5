-- needs: env days_index days
-- Adds marks.
--
-- returns  {how many were new, how many were there already}
-- costs    O(1) for each

local marks = argumentsFrom(2) -- user, kind or '' for the user's own, day, …

-- A part of the work is done for many marks at a time, so that Redis is asked seldom:
-- for all users, for those of a day, and for those of a month.

-- numbersOf gives a number to each user who has none. It returns the numbers of all, by
-- user, and the set of those that it gave.
local function numbersOf(users)
  local out, given, new = {}, {}, {}
  for i, n in ipairs(call('HMGET', key('num'), unpack(users))) do
    if n then out[users[i]] = tonumber(n) else new[#new + 1] = users[i] end
  end
  if #new == 0 then return out, given end
  local free = call('SPOP', key('free'), #new)
  local more = #new - #free
  if more > 0 then
    numbers = call('HINCRBY', part, 'numbers', more)
    for n = numbers - more, numbers - 1 do free[#free + 1] = n end
  end
  local byUser, buckets = {}, {}
  for i, user in ipairs(new) do
    local n = tonumber(free[i])
    out[user], given[n] = n, true
    byUser[#byUser + 1], byUser[#byUser + 2] = user, n
    local bucket = math.floor(n / 64)
    local b = buckets[bucket] or {}
    b[#b + 1], b[#b + 2] = n, user
    buckets[bucket] = b
  end
  call('HSET', key('num'), unpack(byUser))
  for bucket, b in pairs(buckets) do call('HSET', key('ids:' .. bucket), unpack(b)) end
  return out, given
end

-- enter puts numbers, each named once, into a set and counts them in an index of
-- such sets. It returns those that were not there.
local function enter(name, index, field, some)
  local new = {}
  if isBitmap(name) then
    for _, n in ipairs(some) do
      if call('SETBIT', name, n, 1) == 0 then new[#new + 1] = n end
    end
  else
    for i, there in ipairs(call('SMISMEMBER', name, unpack(some))) do
      if there == 0 then new[#new + 1] = some[i] end
    end
    if #new > 0 then call('SADD', name, unpack(new)) end
  end
  if #new > 0 then countMembers(name, index, field, #new) end
  return new
end

-- setFirsts sets the first days of numbers, each from a map of days: of numbers that
-- follow each other at once.
local function setFirsts(kind, some, days)
  table.sort(some)
  local run = {}
  for i, n in ipairs(some) do
    run[#run + 1] = days[n]
    if some[i + 1] ~= n + 1 then
      setFirstDays(kind, n + 1 - #run, unpack(run))
      run = {}
    end
  end
end

-- grouped sorts things by a name, keeping the order in which the names came.
local function grouped()
  local groups, order = {}, {}
  return function(name)
    if not groups[name] then
      groups[name] = {name = name, numbers = {}, has = {}}
      order[#order + 1] = groups[name]
    end
    return groups[name]
  end, order
end

local users, met = {}, {}
for i = 1, #marks, 3 do
  if not met[marks[i]] then
    met[marks[i]] = true
    users[#users + 1] = marks[i]
  end
end
if #users == 0 then return done({0, 0}) end
advance()
local numberOf, given = numbersOf(users)

-- The numbers of each day of a kind, each once.
local total = 0
local dayOf, days = grouped()
for i = 1, #marks, 3 do
  local kind, n = marks[i + 1], numberOf[marks[i]]
  if kind == '' then kind = call('HGET', key('user:' .. marks[i]), 'kind') or 'user' end
  local g = dayOf(kind .. ':' .. marks[i + 2])
  g.kind, g.day = kind, tonumber(marks[i + 2])
  if not g.has[n] then
    g.has[n] = true
    g.numbers[#g.numbers + 1] = n
  end
  total = total + 1
end

-- The earliest of the days of each number that are new, by kind and of all.
local earliest = {}
local function consider(kind, n, day)
  earliest[kind] = earliest[kind] or {}
  earliest[kind][n] = math.min(earliest[kind][n] or day, day)
end

-- Enter each day's numbers; what is new also makes maps of its month dirty.
local added = 0
local monthsOf, months = grouped()
for _, g in ipairs(days) do
  local new = enter(dayKey(g.name), key('days'), g.name, g.numbers)
  if #new > 0 then
    added = added + #new
    local m = monthsOf(g.kind .. ':' .. monthOf(g.day))
    for _, n in ipairs(new) do
      consider(g.kind, n, g.day)
      consider('', n, g.day)
      if not m.has[n] then
        m.has[n] = true
        m.numbers[#m.numbers + 1] = n
      end
    end
    invalidateFigures(g.kind, g.day)
  end
end

-- First days, and the maps that are to be archived again.
for kind, some in pairs(earliest) do
  local later = {}
  for n, day in pairs(some) do
    local f = given[n] and -1 or firstDay(kind, n)
    if f < 0 or day < f then later[#later + 1] = n end
  end
  setFirsts(kind, later, some)
end
for _, m in ipairs(months) do
  if someMarkless == nil then someMarkless = call('EXISTS', key('markless')) == 1 end
  if someMarkless then call('ZREM', key('markless'), unpack(m.numbers)) end
  enter(key('dirty:' .. m.name), key('dirtymonths'), m.name, m.numbers)
end
if added > 0 then noteMarkChange() end
return done({added, total - added})

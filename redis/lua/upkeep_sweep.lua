-- needs: env bytes invisible event presence session_large session_read session due session_due session_visibility session_cutoff days_index days days_release
-- Does a bounded step of upkeep, for the one server that holds the partition's lease:
-- ends sessions past their deadline, announces who fell silent or logged out, and
-- forgets bans that ended, and events and visits past what is kept. It looks only at
-- the first of everything, unless that is due.
--
-- returns  {1 if there is more to do else 0, how many erasures are to be gone on with,
--          names that have no visits left…}; {0} if another server holds the lease
-- costs    O(log n) for each

local server = ARGV[2] -- who asks
local leaseLength = tonumber(ARGV[3]) -- ms
local budget = tonumber(ARGV[4]) -- of each kind of work
local eventsAge, eventsCount = tonumber(ARGV[5]), tonumber(ARGV[6]) -- how long events are kept, ms, and how many of each stream
local visitsAge = tonumber(ARGV[7]) -- how long hours of visits are kept, ms
local dueBudget = tonumber(ARGV[8]) -- sessions past their deadline

advance()

-- Take the lease, or leave the work to its holder. A lease that ends later than one
-- may was taken while a clock was ahead, and does not count.
local lease = call('HMGET', part, 'leaseholder', 'leaseuntil', 'clockahead')
if lease[1] and lease[1] ~= server and now < tonumber(lease[2]) and tonumber(lease[2]) <= now + leaseLength then
  return done({'0'})
end
setState('leaseholder', server)
setState('leaseuntil', num(now + leaseLength))

local more = 0

-- repairTimes brings signs of life back to now that are more than a day ahead: a
-- wrong clock has left them. After one that was less ahead they stay as they are, as
-- no last-seen time moves backwards.
local function repairTimes()
  local day, sec, left = 86400000, math.floor(at / 1000), budget
  local function wrong(order, from, to)
    local members = call('ZRANGEBYSCORE', order, from, to, 'LIMIT', 0, left)
    left = left - #members
    return members
  end
  local function bring(from, to, score)
    for _, user in ipairs(wrong(key('seen'), from, to)) do
      call('ZADD', key('seen'), score, user)
      if anyHidden() then call('ZADD', key('hidden'), 'XX', score, user) end
    end
  end
  bring('(' .. num(sec + day / 1000), '+inf', num(sec))
  bring('-inf', '(' .. num(-sec - day / 1000), num(-sec))
  for _, idle in ipairs(call('SMEMBERS', key('idles'))) do
    for _, sid in ipairs(wrong(key('idle:' .. idle), '(' .. num(at + day), '+inf')) do
      call('ZADD', key('idle:' .. idle), num(at), sid)
      local s = readSession(sid)
      if s then placeSession(s) end
    end
  end
  for _, sid in ipairs(wrong(key('deadline:postponed'), '(' .. num(at + grace + day), '+inf')) do
    local s = readSession(sid)
    if s and s.postponed then
      s.postponed = at + grace
      s.blob = packSession(s)
      call('HSET', key('sessions'), sid, s.blob)
      placeSession(s)
    else
      call('ZREM', key('deadline:postponed'), sid)
    end
  end
  if left < budget then more = 1 else call('HDEL', part, 'clockahead') end
end

-- nextOffline returns the users who are next to be announced offline, each with when
-- they were last seen, in the order of that time and then of their bytes. It finds the
-- place of the last one announced by a name that no user can have.
local function nextOffline(line)
  local seen = key('seen')
  if offlineUser == '' then
    return call('ZRANGEBYSCORE', seen, math.max(1, offlineBefore), '(' .. num(line), 'WITHSCORES', 'LIMIT', 0, budget)
  end
  local after = offlineUser .. '\0'
  call('ZADD', seen, num(offlineBefore), after)
  local rank = call('ZRANK', seen, after)
  call('ZREM', seen, after)
  return call('ZRANGE', seen, rank, rank + budget - 1, 'WITHSCORES')
end

-- announceSilent tells of those whose window has passed without a sign of life.
local function announceSilent()
  local line = onlineSince(offlineWindow)
  if line <= offlineBefore then return end
  local upTo, user = line, ''
  if presenceEvents == 1 then
    local some = nextOffline(line)
    local told = call('EXISTS', key('announced')) == 1
    for i = 1, #some, 2 do
      local last = tonumber(some[i + 1])
      if last >= line then break end
      if not (told and call('SREM', key('announced'), some[i]) == 1) then announceOffline(some[i], last) end
      if i == 2 * budget - 1 then upTo, user, more = last, some[i], 1 end
    end
  end
  offlineBefore, offlineUser = upTo, user
  setState('offlinebefore', num(upTo))
  setState('offlineuser', user)
end

-- announceLoggedOut tells of those who logged out and gave no sign of life in time.
local function announceLoggedOut()
  local left = call('ZRANGEBYSCORE', key('loggedout'), '-inf', at, 'WITHSCORES', 'LIMIT', 0, budget)
  for i = 1, #left, 2 do
    if presenceEvents == 1 then emit('pres', USER_OFFLINE, left[i], {at = tonumber(left[i + 1])}) end
    call('ZREM', key('loggedout'), left[i])
  end
  if #left == 2 * budget then more = 1 end
end

-- trimBans forgets bans that have ended.
local function trimBans()
  local over = call('ZRANGEBYSCORE', key('banends'), '-inf', at, 'LIMIT', 0, budget)
  if #over == 0 then return end
  call('HDEL', key('bans'), unpack(over))
  call('ZREM', key('banends'), unpack(over))
  if #over == budget then more = 1 end
end

local keptSince = at - eventsAge

-- noteTrimmed notes that events of a stream up to a place are no longer kept, so that a
-- reader who has not read them is told.
local function noteTrimmed(stream, place)
  local field = 'trimmed' .. stream
  if tonumber(place) > tonumber(call('HGET', part, field) or 0) then call('HSET', part, field, place) end
end

local function placeOf(entry) return tonumber(string.match(entry[1], '^%d+')) end

-- isOld reports whether an event is past what is kept.
local function isOld(entry)
  local _, _, t = struct.unpack('>BBI8', entry[2][2])
  return t <= keptSince
end

-- trim removes the oldest events of a stream: first those that are too many, which
-- Redis counts by itself, then those that are too old, one by one.
local function trim(stream)
  local name = key(stream)
  local first = call('XRANGE', name, '-', '+', 'COUNT', 1)[1]
  if not first then return end
  local excess = call('XLEN', name) - eventsCount
  if excess > 0 then
    local n = math.min(excess, 50 * budget)
    if n < excess then more = 1 end
    call('XTRIM', name, 'MAXLEN', num(eventsCount + excess - n))
    first = call('XRANGE', name, '-', '+', 'COUNT', 1)[1]
    noteTrimmed(stream, num(placeOf(first) - 1))
  end
  if not isOld(first) then return end
  local last
  for i, entry in ipairs(call('XRANGE', name, '-', '+', 'COUNT', 2 * budget)) do
    if not isOld(entry) then break end
    last = placeOf(entry)
    if i == 2 * budget then more = 1 end
  end
  call('XTRIM', name, 'MINID', num(last + 1) .. '-0')
  noteTrimmed(stream, num(last))
  if call('XLEN', name) == 0 then call('DEL', name) end
end

-- trimRedacted does so with events from which an erasure removed the user.
local function trimRedacted()
  local function read(entry)
    local kind, _, t = struct.unpack('>BBI8', string.sub(entry, string.find(entry, ':', 1, true) + 1))
    return kind, t <= keptSince
  end
  local first = call('ZRANGE', key('redacted'), 0, 0)[1]
  if not first or not select(2, read(first)) then return end
  local last, lastOf = nil, {}
  for i, entry in ipairs(call('ZRANGE', key('redacted'), 0, budget - 1)) do
    local kind, old = read(entry)
    if not old then break end
    last = string.match(entry, '^%d+')
    lastOf[streamOf(kind)] = last
    if i == budget then more = 1 end
  end
  call('ZREMRANGEBYSCORE', key('redacted'), '-inf', last)
  for stream, place in pairs(lastOf) do noteTrimmed(stream, place) end
end

-- trimVisits forgets old hours, and a name with its last hour.
local function trimVisits()
  local nameless = {}
  local old = call('ZRANGEBYSCORE', key('hours'), '-inf', at - visitsAge, 'LIMIT', 0, budget)
  for _, hour in ipairs(old) do
    local name = string.match(hour, '^%-?%d+:(.*)$')
    call('DEL', key('visits:' .. hour))
    call('ZREM', key('hours'), hour)
    if call('HINCRBY', key('names'), name, -1) <= 0 then
      call('HDEL', key('names'), name)
      call('HDEL', key('newesthours'), name)
      nameless[#nameless + 1] = name
    end
  end
  if #old == budget then more = 1 end
  return nameless
end

-- The steps. What is due comes first.
if lease[3] then repairTimes() end
if drainAll(dueBudget) >= dueBudget then more = 1 end
announceSilent()
announceLoggedOut()

-- Then what is past what is kept.
trimBans()
trim('log')
trim('pres')
trimRedacted()
local nameless = trimVisits()
if releaseNumbers(4 * budget) then more = 1 end

-- Erasures that nobody goes on with. Those that would wait for very long were noted
-- while a clock was ahead.
local unfinished = call('ZCOUNT', key('erasing'), '-inf', at) + call('ZCOUNT', key('erasing'), '(' .. num(at + 60000), '+inf')
return done({num(more), num(unfinished), unpack(nameless)})

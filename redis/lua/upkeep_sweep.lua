-- needs: env bytes event presence session_large session session_visibility session_cutoff days_index days
-- A bounded step of upkeep, for the one server that holds the partition's lease:
-- ends sessions past their deadline, announces who
-- fell silent or left, and forgets bans that ended, and events and visits past
-- what is kept. It looks at the first of everything only, unless that is due.
--
-- ARGV[2]  who asks            ARGV[3]  how long the lease lasts, ms
-- ARGV[4]  how many of each at most
-- ARGV[5]  how long events are kept, ms      ARGV[6]  how many of each stream
-- ARGV[7]  how long hours of visits are kept, ms
-- ARGV[8]  how many sessions past their deadline at most
-- reply    {1 if there is more to do, else 0, how many erasures are to be gone on with,
--          see upkeep_resume_erasures.lua, names that have no visits left…}
-- cost     O(log n) for each

advance()

local lease = call('HMGET', part, 'leaseholder', 'leaseuntil', 'clockahead')
if lease[1] and lease[1] ~= ARGV[2] and now < tonumber(lease[2]) and tonumber(lease[2]) <= now + tonumber(ARGV[3]) then
  return done({'0'})
end
set('leaseholder', ARGV[2])
set('leaseuntil', num(now + ARGV[3]))

local budget, more = tonumber(ARGV[4]), 0

-- mend brings signs of life back to now that are more than a day ahead: a clock
-- that was wrong has left them. One set back by less leaves them as they are, as
-- no last-seen time moves backwards.
local function mend()
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
      local s = read(sid)
      if s then place(s) end
    end
  end
  for _, sid in ipairs(wrong(key('deadline:postponed'), '(' .. num(at + grace + day), '+inf')) do
    local s = read(sid)
    if s and s.postponed then
      s.postponed = at + grace
      s.blob = pack(s)
      call('SET', key('s:' .. sid), s.blob)
      place(s)
    else
      call('ZREM', key('deadline:postponed'), sid)
    end
  end
  if left < budget then more = 1 else call('HDEL', part, 'clockahead') end
end

if lease[3] then mend() end
if drainDue(tonumber(ARGV[8])) >= tonumber(ARGV[8]) then more = 1 end

-- nextSilent returns users, each with when they were last seen, who are next to
-- be announced silent, in the order of that time and then of their bytes. The
-- place of the last one announced is found by a name that no user can have.
local function nextSilent(line)
  local seen = key('seen')
  if quiet == '' then
    return call('ZRANGEBYSCORE', seen, math.max(1, silent), '(' .. num(line), 'WITHSCORES', 'LIMIT', 0, budget)
  end
  local marker = quiet .. '\0'
  call('ZADD', seen, num(silent), marker)
  local rank = call('ZRANK', seen, marker)
  call('ZREM', seen, marker)
  return call('ZRANGE', seen, rank, rank + budget - 1, 'WITHSCORES')
end

-- announce tells of those whose window has passed without a sign of life.
local function announce()
  local line = since(announced)
  if line <= silent then return end
  local upTo, user = line, ''
  if presence == 1 then
    local some = nextSilent(line)
    local told = call('EXISTS', key('announced')) == 1
    for i = 1, #some, 2 do
      local last = tonumber(some[i + 1])
      if last >= line then break end
      if not (told and call('SREM', key('announced'), some[i]) == 1) then announceSilence(some[i], last) end
      if i == 2 * budget - 1 then upTo, user, more = last, some[i], 1 end
    end
  end
  silent, quiet = upTo, user
  set('offlinebefore', num(upTo))
  set('offlineuser', user)
end
announce()

-- announceLeft tells of those who logged out and were not heard again in time.
local function announceLeft()
  local left = call('ZRANGEBYSCORE', key('loggedout'), '-inf', at, 'WITHSCORES', 'LIMIT', 0, budget)
  for i = 1, #left, 2 do
    if presence == 1 then emit('pres', USER_OFFLINE, left[i], {at = tonumber(left[i + 1])}) end
    call('ZREM', key('loggedout'), left[i])
  end
  if #left == 2 * budget then more = 1 end
end
announceLeft()

local function trimBans()
  local over = call('ZRANGEBYSCORE', key('banends'), '-inf', at, 'LIMIT', 0, budget)
  if #over == 0 then return end
  call('HDEL', key('bans'), unpack(over))
  call('ZREM', key('banends'), unpack(over))
  if #over == budget then more = 1 end
end
trimBans()

local kept = at - tonumber(ARGV[5])

-- trimmed notes that events up to a place are gone, so that no reader passes
-- over them in silence.
local function trimmed(place)
  if tonumber(place) > tonumber(call('HGET', part, 'trimmed') or 0) then call('HSET', part, 'trimmed', place) end
end

local function placeOf(entry) return tonumber(string.match(entry[1], '^%d+')) end

-- isOld reports whether an event is past what is kept.
local function isOld(entry)
  local _, _, t = struct.unpack('>BBI8', entry[2][2])
  return t <= kept
end

-- trim takes the oldest events of a stream away: first those that are too many,
-- which Redis counts by itself, then those that are too old, one by one.
local function trim(stream)
  local name, most = key(stream), tonumber(ARGV[6])
  local first = call('XRANGE', name, '-', '+', 'COUNT', 1)[1]
  if not first then return end
  local excess = call('XLEN', name) - most
  if excess > 0 then
    local n = math.min(excess, 50 * budget)
    if n < excess then more = 1 end
    call('XTRIM', name, 'MAXLEN', num(most + excess - n))
    first = call('XRANGE', name, '-', '+', 'COUNT', 1)[1]
    trimmed(num(placeOf(first) - 1))
  end
  if not isOld(first) then return end
  local gone
  for i, entry in ipairs(call('XRANGE', name, '-', '+', 'COUNT', 2 * budget)) do
    if not isOld(entry) then break end
    gone = placeOf(entry)
    if i == 2 * budget then more = 1 end
  end
  call('XTRIM', name, 'MINID', num(gone + 1) .. '-0')
  trimmed(num(gone))
  if call('XLEN', name) == 0 then call('DEL', name) end
end

-- trimRedacted does so with those that an erasure took the user out of.
local function trimRedacted()
  local function old(entry)
    local _, _, t = struct.unpack('>BBI8', string.sub(entry, string.find(entry, ':', 1, true) + 1))
    return t <= kept
  end
  local first = call('ZRANGE', key('redacted'), 0, 0)[1]
  if not first or not old(first) then return end
  local gone
  for i, entry in ipairs(call('ZRANGE', key('redacted'), 0, budget - 1)) do
    if not old(entry) then break end
    gone = string.match(entry, '^%d+')
    if i == budget then more = 1 end
  end
  call('ZREMRANGEBYSCORE', key('redacted'), '-inf', gone)
  trimmed(gone)
end

-- trimVisits forgets hours, and names with their last one.
local function trimVisits()
  local nameless = {}
  local old = call('ZRANGEBYSCORE', key('hours'), '-inf', at - tonumber(ARGV[7]), 'LIMIT', 0, budget)
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

trim('log')
trim('pres')
trimRedacted()
local nameless = trimVisits()
if tidyNumbers(4 * budget) then more = 1 end
-- Those that would wait for very long were noted while a clock was ahead.
local unfinished = call('ZCOUNT', key('erasing'), '-inf', at) + call('ZCOUNT', key('erasing'), '(' .. num(at + 60000), '+inf')
return done({num(more), num(unfinished), unpack(nameless)})

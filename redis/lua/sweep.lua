-- A bounded step of upkeep: leaves a stamp of life; and, for the one server that
-- holds the partition's lease, ends sessions past their deadline, announces who
-- fell silent, and forgets bans that ended, and events and visits past what is
-- kept.
--
-- ARGV[2]  who asks            ARGV[3]  how long the lease lasts, ms
-- ARGV[4]  how many of each at most
-- ARGV[5]  how long events are kept, ms      ARGV[6]  how many of each stream
-- ARGV[7]  how long hours of visits are kept, ms
-- reply    {1 if there is more to do, else 0, names that have no visits left…}
-- cost     O(log n) for each

if not stamp then
  set('stamp', num(now))
elseif now > stamp then
  set('stamp', num(now))
end
advance()

local lease = call('HMGET', part, 'holder', 'until', 'mend')
if lease[1] and lease[1] ~= ARGV[2] and now < tonumber(lease[2]) and tonumber(lease[2]) <= now + tonumber(ARGV[3]) then
  return done({'0'})
end
set('holder', ARGV[2])
set('until', num(now + ARGV[3]))

local budget, more = tonumber(ARGV[4]), 0

-- mend brings signs of life back to now that are more than a day ahead: a clock
-- that was wrong has left them. One set back by less leaves them as they are, as
-- no last-seen time moves backwards.
local function mend()
  local day, sec = 86400000, math.floor(at / 1000)
  local function bring(name, from, to, score)
    local wrong = call('ZRANGEBYSCORE', name, from, to, 'LIMIT', 0, budget)
    for _, member in ipairs(wrong) do call('ZADD', name, score, member) end
    if #wrong > 0 then more = 1 end
  end
  bring(key('seen'), '(' .. num(sec + day / 1000), '+inf', num(sec))
  bring(key('seen'), '-inf', '(' .. num(-sec - day / 1000), num(-sec))
  for _, idle in ipairs(call('SMEMBERS', key('idles'))) do
    bring(key('idle:' .. idle), '(' .. num(at + day), '+inf', num(at))
  end
  bring(key('late'), '(' .. num(at + grace + day), '+inf', num(at + grace))
  if more == 0 then call('HDEL', part, 'mend') end
end

if lease[3] then mend() end
if drain(budget) >= budget then more = 1 end

-- announce tells of those whose window has passed without a sign of life.
local function announce()
  local line = since(announced)
  if line <= silent then return end
  if presence == 1 then
    local quiet = call('ZRANGEBYSCORE', key('seen'), silent, line - 1, 'WITHSCORES', 'LIMIT', 0, budget)
    local last = 0
    for i = 1, #quiet, 2 do
      last = tonumber(quiet[i + 1])
    end
    if #quiet >= 2 * budget then
      -- whole seconds only, so that nobody is announced twice
      quiet = call('ZRANGEBYSCORE', key('seen'), silent, last, 'WITHSCORES')
      line, more = last + 1, 1
    end
    for i = 1, #quiet, 2 do emit('pres', USER_OFFLINE, quiet[i]) end
  end
  silent = line
  set('silent', num(line))
end
announce()

local function trimBans()
  local banKey
  for i, ban in ipairs(call('HGETALL', key('bans'))) do
    if i % 2 == 1 then banKey = ban
    elseif struct.unpack('>I8', ban) <= at then call('HDEL', key('bans'), banKey) end
  end
end

local kept = at - tonumber(ARGV[5])

-- trimmed notes that events up to a place are gone, so that no reader passes
-- over them in silence.
local function trimmed(place)
  if tonumber(place) > tonumber(call('HGET', part, 'trimmed') or 0) then call('HSET', part, 'trimmed', place) end
end

-- trim takes the oldest events of a stream away.
local function trim(stream)
  local name, gone = key(stream), nil
  local excess = call('XLEN', name) - tonumber(ARGV[6])
  for i, entry in ipairs(call('XRANGE', name, '-', '+', 'COUNT', budget)) do
    local _, _, t = struct.unpack('>BBI8', entry[2][2])
    if i > excess and t > kept then break end
    gone = string.match(entry[1], '^%d+')
    if i == budget then more = 1 end
  end
  if gone then
    call('XTRIM', name, 'MINID', num(tonumber(gone) + 1) .. '-0')
    trimmed(gone)
  end
  if call('XLEN', name) == 0 then call('DEL', name) end
end

-- trimRedacted does so with those that an erasure took the user out of.
local function trimRedacted()
  local gone
  for _, entry in ipairs(call('ZRANGE', key('redacted'), 0, budget - 1)) do
    local place, _, _, t = string.match(entry, '^%d+'), struct.unpack('>BBI8', string.sub(entry, string.find(entry, ':', 1, true) + 1))
    if t > kept then break end
    gone = place
  end
  if gone then
    call('ZREMRANGEBYSCORE', key('redacted'), '-inf', gone)
    trimmed(gone)
  end
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
      nameless[#nameless + 1] = name
    end
  end
  if #old == budget then more = 1 end
  return nameless
end

if call('EXISTS', key('bans')) == 1 then trimBans() end
trim('log')
trim('pres')
trimRedacted()
local nameless = trimVisits()
return done({num(more), unpack(nameless)})

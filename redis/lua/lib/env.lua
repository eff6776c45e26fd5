-- The state and the time of a partition: what every script of one begins with.
-- Gives key, num, argumentsFrom, setState, advance, done, effectiveDeadline,
-- effectiveNow and onlineSince, and the names below.
--
-- KEYS[1]  rc:{p}, the root of the partition. Every other key is made of it,
--          carries the same hash tag, and so lies in the same slot. No key has
--          this name. So while the slot moves between two servers, one declared
--          key is always missing, and both servers refuse with TRYAGAIN
-- KEYS[2]  rc:{p}:part, the state of the partition
-- ARGV[1]  a packed record: now (ms), the last time the caller heard from the
--          partition (ms), window and grace that decide user.offline (s), restart
--          grace (ms), how long ended sessions are kept (ms), how long one who
--          logged out is not announced offline (ms), 1 if presence makes events,
--          1 if times are held to Redis's own clock; then, if the answer is to
--          be kept, the id of the request
--
-- The arguments of the script itself begin with ARGV[2].
-- costs    O(1)
--
-- A script ends with "return done(reply)". That writes the changed fields of the
-- state, and keeps the answer if the request has an id. If the answer was lost
-- and the caller sends the request again, the script returns the first answer
-- and does nothing.

local root, part = KEYS[1], KEYS[2]
local call = redis.call
local now, lastHeard, offlineWindow, grace, endedKept, logoutGrace, presenceEvents, clockHeld, requestPlace =
  struct.unpack('>I8I8I8I8I8I8BB', ARGV[1])
local request = string.sub(ARGV[1], requestPlace)

local function key(name) return root .. ':' .. name end
local function num(n) return string.format('%.0f', n) end

-- argumentsFrom returns the arguments of the script from a place on: a list.
local function argumentsFrom(place)
  local list = {}
  for i = place, #ARGV do list[i - place + 1] = ARGV[i] end
  return list
end

if request ~= '' then
  local before = call('GET', key('answer:' .. request))
  if before then return cmsgpack.unpack(before) end
end

-- The state of the partition, as docs/formats.md describes it. Its clock never
-- runs backwards.
local state = call('HMGET', part, 'clock', 'stamp', 'outages', 'offlinebefore', 'lastevent', 'offlineuser', 'cutoffs', 'largeusers', 'eventfloor', 'beats')
local clock = tonumber(state[1]) or 0

-- Time is the later of the caller's and the partition's, and never more than 2 s
-- past Redis's own: a caller whose clock is ahead moves nothing there.
local at = math.max(now, clock)
local micros -- Redis's time, once it has been asked for
if clockHeld == 1 then
  local t = call('TIME')
  micros = t[1] * 1000000 + t[2]
  local limit = t[1] * 1000 + math.floor(t[2] / 1000) + 2000
  now, at = math.min(now, limit), math.min(at, limit)
end
local stamp = tonumber(state[2])
local offlineBefore = tonumber(state[4]) or 0
local lastEvent = math.max(tonumber(state[5]) or 0, tonumber(state[9]) or 0) -- or a later place that events are to come behind
local offlineUser = state[6] or ''
local cutoffs = tonumber(state[7]) or 0
local largeUsers = tonumber(state[8]) or 0
local beats = tonumber(state[10]) or 0 -- signs of life that the partition has counted
local flow = {} -- logins and ends that this script counts, by their place in the record
local stateChanges = {}

local function setState(field, value) stateChanges[field] = value end

-- advance moves the partition's clock on. A script that changes something does so
-- first.
local function advance()
  if at > clock then
    setState('clock', num(at))
    clock = at
  end
end

-- done ends a script: it writes the state, keeps the answer, and returns it. The answer
-- is kept for a minute: the request comes again within the timeout of a command, which
-- is far shorter.
local function done(reply)
  if next(flow) then
    local counts = {struct.unpack('>I8I8I8I8I8I8I8I8I8', call('HGET', part, 'flow') or string.rep('\0', 72))}
    for place, n in pairs(flow) do counts[place] = counts[place] + n end
    setState('flow', struct.pack('>I8I8I8I8I8I8I8I8I8', unpack(counts, 1, 9)))
  end
  local fields = {}
  for field, value in pairs(stateChanges) do
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  if #fields > 0 then call('HSET', part, unpack(fields)) end
  if request ~= '' then call('SET', key('answer:' .. request), cmsgpack.pack(reply), 'PX', 60000) end
  return reply
end

-- Outages: from their first instant to the end of their grace, in order. Those
-- whose graces touch are one, so that few are enough: an outage whose grace ends
-- before the next one begins decides about nobody who is still alive.
local outages = {}

if state[3] then
  for i = 1, #state[3], 16 do
    local from, till = struct.unpack('>I8I8', state[3], i)
    outages[#outages + 1] = {from, till}
  end
end

-- A clock that is too far ahead is set back first. Then the gap since the last sign of life
-- counts as an outage.
local maxGap = 5000
if clock > at or (stamp and now - math.max(stamp, math.min(lastHeard, now)) > maxGap) then
  local keptOutages = 16

  -- trySet sets fields of the state at once. Redis may refuse writes just now: then
  -- this script alone knows the outage, and the first script that can write finds
  -- the same gap.
  local function trySet(...)
    redis.pcall('HSET', part, ...)
  end

  local function packOutages()
    local out = {}
    for i = math.max(1, #outages - keptOutages + 1), #outages do
      out[#out + 1] = struct.pack('>I8I8', outages[i][1], outages[i][2])
    end
    return table.concat(out)
  end

  local function recordOutage(from, to)
    local till = to + grace
    while #outages > 0 and from < outages[#outages][2] do
      local o = table.remove(outages)
      from, till = math.min(from, o[1]), math.max(till, o[2])
    end
    outages[#outages + 1] = {from, till}
  end

  -- repairClock sets the clock back that a wrong time had moved further ahead than
  -- Redis's own may be. Until then the partition stood still: that counts as an
  -- outage that is over. The upkeep looks for what else the wrong time left.
  local function repairClock()
    local kept = {}
    for i = 1, #outages do
      local o = outages[i]
      if o[1] < at then kept[#kept + 1] = {o[1], math.min(o[2], at + grace)} end
    end
    outages = kept
    if stamp then stamp = math.min(stamp, at) end
    if offlineBefore > math.floor(at / 1000) then offlineBefore, offlineUser = math.floor(at / 1000), '' end
    trySet('clock', num(at), 'offlinebefore', num(offlineBefore), 'offlineuser', offlineUser, 'outages', packOutages(), 'clockahead', num(clock))
    if stamp then trySet('stamp', num(stamp)) end
    clock = at
  end

  if clock > at then repairClock() end
  if stamp then
    local last = math.max(stamp, math.min(lastHeard, now))
    if now - last > maxGap then
      recordOutage(last, now)
      stamp = now
      redis.pcall('HINCRBY', part, 'outagecount', 1)
      trySet('outages', packOutages(), 'stamp', num(now))
    end
  end
end

-- effectiveDeadline moves a deadline that fell into an outage, or into the grace
-- behind it, to the end of the grace. It keeps the order of deadlines.
local function effectiveDeadline(deadline)
  for i = 1, #outages do
    local o = outages[i]
    if o[1] < deadline and deadline < o[2] then deadline = o[2] end
  end
  return deadline
end

-- effectiveNow is the instant from which windows are measured: during the grace
-- after an outage, the instant the outage began. An idle deadline has passed at t
-- exactly if it is not after effectiveNow(t).
local function effectiveNow(t)
  for i = #outages, 1, -1 do
    local o = outages[i]
    if o[1] <= t and t < o[2] then t = o[1] end
  end
  return t
end

-- onlineSince returns the first second that counts as online for a window.
local function onlineSince(window)
  return math.max(1, math.floor(effectiveNow(at) / 1000) - window)
end

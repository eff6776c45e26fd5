-- What every script of a partition begins with: the partition's state and time.
--
-- KEYS[1]  rc:{p}, the root of the partition; every other key is derived from
--          it, carries the same hash tag, and so lies in the same slot. No key
--          has this name, so while the slot moves between servers one declared
--          key is always missing, and both servers refuse with TRYAGAIN
-- KEYS[2]  rc:{p}:part, the state of the partition
-- ARGV[1]  env, packed: now, the last time the caller heard from the partition,
--          window and grace that decide user.offline (s), restart grace (ms),
--          how long ended sessions are kept (ms), how long one who logged out is
--          not announced offline (ms), whether presence makes events, whether
--          times are held to Redis's own; then, if the answer is to be kept, the
--          id of the request
-- cost     O(1)
--
-- A script ends with "return done(reply)", which writes the partition's state
-- back if it changed, and keeps the answer if the request has an id: sent again
-- because its answer was lost, it returns the first answer and does nothing.

local root, part = KEYS[1], KEYS[2]
local call = redis.call
local now, heard, announced, grace, keep, leave, presence, held, behind = struct.unpack('>I8I8I8I8I8I8BB', ARGV[1])
local request = string.sub(ARGV[1], behind)

local function key(name) return root .. ':' .. name end
local function num(n) return string.format('%.0f', n) end

-- A request comes again within the timeout of a command, which is far shorter
-- than this.
local answerKept = '60000'

if request ~= '' then
  local before = call('GET', key('answer:' .. request))
  if before then return cmsgpack.unpack(before) end
end

-- The state of the partition: its clock never runs backwards, stamp is the last
-- sign of life once the engine has been ticked, outages are the gaps between
-- stamps, silent is the second up to which silence has been announced, and quiet
-- the user of that second up to whom it has, events the place of the newest
-- event, cutoffs how many users have one, see session_cutoff.lua, large how many are, see
-- session_large.lua.
local state = call('HMGET', part, 'clock', 'stamp', 'outages', 'offlinebefore', 'lastevent', 'offlineuser', 'cutoffs', 'largeusers')
local clock = tonumber(state[1]) or 0

-- Time is the later of the caller's and the partition's, and never more than 2 s
-- past Redis's own: a caller whose clock is ahead moves nothing there.
local at = math.max(now, clock)
local micros -- Redis's time, once it has been asked for
if held == 1 then
  local t = call('TIME')
  micros = t[1] * 1000000 + t[2]
  local limit = t[1] * 1000 + math.floor(t[2] / 1000) + 2000
  now, at = math.min(now, limit), math.min(at, limit)
end
local stamp = tonumber(state[2])
local silent = tonumber(state[4]) or 0
local lastEvent = tonumber(state[5]) or 0
local quiet = state[6] or ''
local cutoffs = tonumber(state[7]) or 0
local large = tonumber(state[8]) or 0
local changed = {}

local function set(field, value) changed[field] = value end

local function advance()
  if at > clock then
    set('clock', num(at))
    clock = at
  end
end

local function done(reply)
  local fields = {}
  for field, value in pairs(changed) do
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  if #fields > 0 then call('HSET', part, unpack(fields)) end
  if request ~= '' then call('SET', key('answer:' .. request), cmsgpack.pack(reply), 'PX', answerKept) end
  return reply
end

-- Outages: from their first instant to the end of their grace, in order. Those
-- whose graces touch are one, so that few are enough: one that does not touch a
-- later one decides about nobody who is alive any more. What cannot be written
-- now, because Redis refuses writes, is known to this script alone; the first one
-- that can write finds the same gap.
local maxGap, keptOutages = 5000, 16
local outages = {}
if state[3] then
  for i = 1, #state[3], 16 do
    local from, till = struct.unpack('>I8I8', state[3], i)
    outages[#outages + 1] = {from, till}
  end
end

local function note(...)
  redis.pcall('HSET', part, ...)
end

local function packOutages()
  local out = {}
  for i = math.max(1, #outages - keptOutages + 1), #outages do
    out[#out + 1] = struct.pack('>I8I8', outages[i][1], outages[i][2])
  end
  return table.concat(out)
end

local function record(from, to)
  local till = to + grace
  while #outages > 0 and from < outages[#outages][2] do
    local o = table.remove(outages)
    from, till = math.min(from, o[1]), math.max(till, o[2])
  end
  outages[#outages + 1] = {from, till}
end

-- ahead puts right what a clock left behind that was further ahead than any may
-- be: the time it was ahead is taken for an outage that is over.
local function ahead()
  local kept = {}
  for i = 1, #outages do
    local o = outages[i]
    if o[1] < at then kept[#kept + 1] = {o[1], math.min(o[2], at + grace)} end
  end
  outages = kept
  if stamp then stamp = math.min(stamp, at) end
  if silent > math.floor(at / 1000) then silent, quiet = math.floor(at / 1000), '' end
  note('clock', num(at), 'offlinebefore', num(silent), 'offlineuser', quiet, 'outages', packOutages(), 'clockahead', num(clock))
  if stamp then note('stamp', num(stamp)) end
  clock = at
end

if clock > at then ahead() end
if stamp then
  local last = math.max(stamp, math.min(heard, now))
  if now - last > maxGap then
    record(last, now)
    stamp = now
    redis.pcall('HINCRBY', part, 'outagecount', 1)
    note('outages', packOutages(), 'stamp', num(now))
  end
end

-- extend moves a deadline that fell into an outage, or into the grace behind
-- it, to the end of the grace. It keeps the order of deadlines.
local function extend(deadline)
  for i = 1, #outages do
    local o = outages[i]
    if o[1] < deadline and deadline < o[2] then deadline = o[2] end
  end
  return deadline
end

-- floor is the instant from which windows are measured: during the grace after
-- an outage, the instant the outage began. An idle deadline has passed at t
-- exactly if it is not after floor(t).
local function floor(t)
  for i = #outages, 1, -1 do
    local o = outages[i]
    if o[1] <= t and t < o[2] then t = o[1] end
  end
  return t
end

-- since returns the first second that counts as online for a window.
local function since(window)
  return math.max(1, math.floor(floor(at) / 1000) - window)
end

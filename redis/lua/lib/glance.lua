-- A glance at the state and the time of a partition, for what answers most calls in one piece,
-- without the functions of env.lua, which follows: Redis makes these anew with every run, which
-- takes longer than the commands of a short read. Takes what env.lua takes. Gives call, root,
-- part, at, isPlain and argumentsFrom.
--
-- isPlain says that nothing stands in the way: no end waits to be written as a cutoff, and
-- env.lua would neither set the clock back nor note an outage, nor does the grace of one last.
-- Then effectiveNow(at) is at, and a deadline later than at is the one that counts.
-- costs    O(1)

local call, root, part = redis.call, KEYS[1], KEYS[2]
local at, isPlain = nil, nil

local function argumentsFrom(place)
  local list = {}
  for i = place, #ARGV do list[i - place + 1] = ARGV[i] end
  return list
end

do
  local now, lastHeard, _, _, _, _, _, clockHeld = struct.unpack('>I8I8I8I8I8I8BB', ARGV[1])
  local state = call('HMGET', part, 'clock', 'stamp', 'outages', 'cutoffs')
  local clock, stamp, outages = tonumber(state[1]) or 0, tonumber(state[2]), state[3]
  at = math.max(now, clock)
  if clockHeld == 1 then
    local t = call('TIME')
    local limit = t[1] * 1000 + math.floor(t[2] / 1000) + 2000
    now, at = math.min(now, limit), math.min(at, limit)
  end
  local isSteady = clock <= at and not (stamp and now - math.max(stamp, math.min(lastHeard, now)) > 5000)
  local isOver = not outages or #outages < 16 or at >= struct.unpack('>I8', outages, #outages - 7)
  isPlain = isSteady and isOver and (tonumber(state[4]) or 0) == 0
end

-- Settles the events of a partition up to a place: all that follow get later places.
--
-- returns  {place of the newest event, of the newest of each stream that is no longer
--          kept, of the newest event that the public is told of}
-- costs    O(1)

local part = KEYS[1] -- rc:{p}:part
local upTo = ARGV[1] -- a place

local state = redis.call('HMGET', part, 'lastevent', 'trimmedlog', 'trimmedpres', 'eventfloor', 'lastpublic')
if math.max(tonumber(state[1]) or 0, tonumber(state[4]) or 0) < tonumber(upTo) then
  -- Redis may refuse writes just now. Then it takes no event either, and those that
  -- come when it takes writes again have later places by their time.
  local noted = redis.pcall('HSET', part, 'eventfloor', upTo)
  if type(noted) == 'table' and noted.err then
    local t = redis.call('TIME')
    if t[1] * 1000000 + t[2] <= tonumber(upTo) then return noted end
  end
end
return {state[1] or '0', state[2] or '0', state[3] or '0', state[5] or '0'}

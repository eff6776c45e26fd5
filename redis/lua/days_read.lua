-- needs: env days_index days_set
-- Reads the sets of users of days: of as many days, from the first on, as one script
-- reads.
--
-- returns  {the fields markchange and archivechange, {kind:day, stamp, … of the
--          offloaded days}, the day to go on at or '' at the end, day, set, …}: a day
--          once for each kind, sets as in days_set.lua
-- costs    O(days with marks + size of the sets), both bounded

local kind = ARGV[2] -- '' for all
local first, last = ARGV[3], ARGV[4]

-- Which days there are, here and in the archive, up to where both lists are whole.
local changes = call('HMGET', part, 'markchange', 'archivechange')
local offloaded, on = someFields(key('offloaded'), kind, first, last, 500)
local here, stop = someFields(key('days'), kind, first, last, 200)
if stop and (not on or stop < on) then on = stop end

-- The sets of those that are here, until the answer is large.
local sets, bytes, day = {}, 0, nil
for _, f in ipairs(here) do
  if on and f[2] >= on then break end
  if f[2] ~= day and bytes > 500000 then
    on = f[2]
    break
  end
  day = f[2]
  local set = packedSet(key('day:' .. f[1] .. ':' .. day))
  bytes = bytes + #set * (string.sub(set, 1, 1) == 'S' and 20 or 1)
  sets[#sets + 1] = day
  sets[#sets + 1] = set
end

-- The stamps of those that are in the archive.
local stamps = {}
for _, f in ipairs(offloaded) do
  if on and f[2] >= on then break end
  stamps[#stamps + 1] = f[1] .. ':' .. f[2]
  stamps[#stamps + 1] = call('HGET', key('offloaded'), stamps[#stamps]) or '0'
end
return done({tonumber(changes[1] or 0), tonumber(changes[2] or 0), stamps, on and num(on) or '', unpack(sets)})

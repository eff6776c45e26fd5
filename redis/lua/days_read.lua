-- needs: env days_index days_set
-- The sets of users of days: of as many days, from the first on, as one script reads.
--
-- ARGV[2]  kind, '' for all   ARGV[3] first day   ARGV[4] last day
-- reply    {marks so far, recalls so far, {kind:day, stamp, … of those days that
--          left}, the day to go on at or '' at the end, day, set, …}, a day once for
--          each kind: sets as in days_set.lua
-- cost     O(days with marks + size of the sets), both bounded

local counts = call('HMGET', part, 'markchange', 'archivechange')
local left, on = someFields(key('offloaded'), ARGV[2], ARGV[3], ARGV[4], 500)
local here, stop = someFields(key('days'), ARGV[2], ARGV[3], ARGV[4], 200)
if stop and (not on or stop < on) then on = stop end
local sets, bytes, day = {}, 0, nil
for _, f in ipairs(here) do
  if on and f[2] >= on then break end
  if f[2] ~= day and bytes > 500000 then
    on = f[2]
    break
  end
  day = f[2]
  local set = packed(key('day:' .. f[1] .. ':' .. day))
  bytes = bytes + #set * (string.sub(set, 1, 1) == 'S' and 20 or 1)
  sets[#sets + 1] = day
  sets[#sets + 1] = set
end
local gone = {}
for _, f in ipairs(left) do
  if on and f[2] >= on then break end
  gone[#gone + 1] = f[1] .. ':' .. f[2]
  gone[#gone + 1] = call('HGET', key('offloaded'), gone[#gone]) or '0'
end
return done({tonumber(counts[1] or 0), tonumber(counts[2] or 0), gone, on and num(on) or '', unpack(sets)})

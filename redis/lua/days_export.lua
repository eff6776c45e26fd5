-- needs: env days_index days_set
-- Reads all marks of a partition: of as many days, from one on, as one script reads.
--
-- returns  {the field markchange, the day to go on at or '' at the end, kind:day,
--          set, …}: sets as in days_set.lua
-- costs    O(size of the sets), bounded

local from = ARGV[2] -- day

local here, on = someFields(key('days'), '', from, '+inf', 200)
local out, bytes, day = {num(call('HGET', part, 'markchange') or 0), ''}, 0, nil
for _, f in ipairs(here) do
  if f[2] ~= day and bytes > 500000 then
    on = f[2]
    break
  end
  day = f[2]
  out[#out + 1] = f[1] .. ':' .. day
  out[#out + 1] = packedSet(key('day:' .. out[#out]))
  bytes = bytes + #out[#out] * (string.sub(out[#out], 1, 1) == 'S' and 20 or 1)
end
out[2] = on and num(on) or ''
return done(out)

-- needs: env figures
-- Reads the cached figures of past days.
--
-- returns  the partition's time, then the figures of each day, packed, with an S
--          behind them if they are stale; '' for a day that has none
-- costs    O(days)

local kind = ARGV[2] -- '' for all
local first, last = ARGV[3], ARGV[4]

local fields, out, epoch = {}, {num(clock)}, figuresEpoch()
for d = first, last do fields[#fields + 1] = kind .. ':' .. d end
for i = 1, #fields, 1000 do
  for _, v in ipairs(call('HMGET', key('figures'), unpack(fields, i, math.min(#fields, i + 999)))) do
    if v then v = string.sub(v, 1, 20) .. (string.sub(v, 21) == epoch and '' or 'S') end
    out[#out + 1] = v or ''
  end
end
return done(out)

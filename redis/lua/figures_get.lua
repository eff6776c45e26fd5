-- needs: env figures_epoch
-- The figures of closed days that are kept, see days.lua.
--
-- ARGV[2]  kind, '' for all   ARGV[3] first day   ARGV[4] last day
-- reply    the partition's time, then the figures of each day, packed, with an S
--          behind them if they are stale; '' for a day that has none
-- cost     O(days)

local fields, out, fresh = {}, {num(clock)}, epoch()
for d = ARGV[3], ARGV[4] do fields[#fields + 1] = ARGV[2] .. ':' .. d end
for i = 1, #fields, 1000 do
  for _, v in ipairs(call('HMGET', key('figures'), unpack(fields, i, math.min(#fields, i + 999)))) do
    if v then v = string.sub(v, 1, 20) .. (string.sub(v, 21) == fresh and '' or 'S') end
    out[#out + 1] = v or ''
  end
end
return done(out)

-- needs: env
-- Forgets reverse edges that were left and have been removed.
--
-- ARGV[2]  user   ARGV[3] stamp of the step that gave them up
-- ARGV[4…] friends
-- reply    1
-- cost     O(log n) for each

local mine, gone = key('x:' .. ARGV[2]), {}
for i, stamp in ipairs(call('ZMSCORE', mine, unpack(ARGV, 4))) do
  if stamp and tonumber(stamp) <= tonumber(ARGV[3]) then gone[#gone + 1] = ARGV[3 + i] end
end
if #gone > 0 then call('ZREM', mine, unpack(gone)) end
return done(1)

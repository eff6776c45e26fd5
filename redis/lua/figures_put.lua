-- needs: env figures_epoch
-- Keeps figures of closed days, unless marks changed since they were made.
--
-- ARGV[2]  marks so far, when they were made   ARGV[3] kind, '' for all
-- ARGV[4…] day, figures packed, …
-- reply    1, or 0 if marks changed
-- cost     O(days)

if tonumber(call('HGET', part, 'markchange') or 0) ~= tonumber(ARGV[2]) then return done(0) end
local fresh = epoch()
for i = 4, #ARGV, 2 do call('HSET', key('figures'), ARGV[3] .. ':' .. ARGV[i], ARGV[i + 1] .. fresh) end
return done(1)

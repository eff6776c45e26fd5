-- needs: env
-- Counts what figures for the public leave out.
--
-- returns  {invisible users with a last-seen time, their sessions in the order of
--          logins}
-- costs    O(log n)

local hidden = key('hidden')
return done({call('ZCARD', hidden) - call('ZCOUNT', hidden, 0, 0), call('ZCARD', key('invisible:login'))})

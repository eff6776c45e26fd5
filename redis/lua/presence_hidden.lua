-- needs: env
-- Counts what figures leave out for the sake of invisible users.
--
-- reply    {invisible users with a last-seen time, their sessions in the order
--          of logins}
-- cost     O(log n)

local hidden = key('hidden')
return done({call('ZCARD', hidden) - call('ZCOUNT', hidden, 0, 0), call('ZCARD', key('invisible:login'))})

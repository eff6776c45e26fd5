-- Leaves a stamp of life, if the engine has been ticked.
--
-- reply  1
-- cost   O(1)

if stamp and now > stamp then set('stamp', num(math.max(stamp, math.min(heard, now)))) end
return done(1)

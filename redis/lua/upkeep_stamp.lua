-- needs: env
-- Leaves a stamp of life.
--
-- ARGV[2]  1 for a tick: the engine is ticked from now on; else only one that has
--          been ticked is stamped
-- reply    1
-- cost     O(1)

if ARGV[2] == '1' then
  if not stamp or now > stamp then set('stamp', num(now)) end
  advance()
elseif stamp and now > stamp then
  set('stamp', num(math.max(stamp, math.min(heard, now))))
end
return done(1)

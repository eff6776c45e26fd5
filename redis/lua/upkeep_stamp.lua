-- needs: env
-- Leaves a stamp of life.
--
-- returns  1
-- costs    O(1)

local isTick = ARGV[2] == '1' -- the engine is ticked from now on; else only one that has been ticked is stamped

if isTick then
  if not stamp or now > stamp then setState('stamp', num(now)) end
  advance()
elseif stamp and now > stamp then
  setState('stamp', num(math.max(stamp, math.min(lastHeard, now))))
end
return done(1)

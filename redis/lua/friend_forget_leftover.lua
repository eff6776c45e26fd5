-- needs: env
-- Forgets the notes of reverse edges that have been removed.
--
-- returns  1
-- costs    O(log n) for each

local user = ARGV[2]
local stamp = ARGV[3] -- of the step that gave the reverse edges up
local friends = argumentsFrom(4)

local notes, old = key('x:' .. user), {}
for i, noted in ipairs(call('ZMSCORE', notes, unpack(friends))) do
  if noted and tonumber(noted) <= tonumber(stamp) then old[#old + 1] = friends[i] end
end
if #old > 0 then call('ZREM', notes, unpack(old)) end
return done(1)

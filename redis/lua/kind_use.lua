-- needs: env
-- Counts what a partition has of some kinds.
--
-- returns  users whose record names it, sessions, … in the order of the kinds
-- costs    O(1) for each

local kinds = argumentsFrom(2)

local out = {}
for _, kind in ipairs(kinds) do
  out[#out + 1] = tonumber(call('HGET', key('kindusers'), kind) or 0)
  out[#out + 1] = call('ZCARD', key('by:kind:' .. kind))
end
return done(out)

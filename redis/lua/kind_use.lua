-- needs: env
-- How much of a partition is of each of some kinds.
--
-- ARGV[2…]  kinds
-- reply     users whose record says it, sessions, … in the order of the kinds
-- cost      O(1) for each

local out = {}
for i = 2, #ARGV do
  out[#out + 1] = tonumber(call('HGET', key('kindusers'), ARGV[i]) or 0)
  out[#out + 1] = call('ZCARD', key('by:kind:' .. ARGV[i]))
end
return done(out)

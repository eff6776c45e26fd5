-- All marks of a partition.
--
-- reply  {marks so far, kind:day, set, …}: sets as in set.lua
-- cost   O(size of the sets)

local out = {num(call('HGET', part, 'marks') or 0)}
for _, field in ipairs(call('HKEYS', key('days'))) do
  out[#out + 1] = field
  out[#out + 1] = packed(key('day:' .. field))
end
return done(out)

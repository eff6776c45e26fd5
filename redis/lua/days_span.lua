-- needs: env days_index
-- Finds the first and the last day that indexes have.
--
-- returns  {first day, last day}, {} if there is none
-- costs    O(kinds · log n)

local kind = ARGV[2] -- '' for all
local indexes = argumentsFrom(3) -- days, offloaded

local kinds, first, last = {kind}, nil, nil
if kind == '' then kinds = call('SMEMBERS', key('firsts')) end
for _, index in ipairs(indexes) do
  for _, k in ipairs(kinds) do
    local order = key(index .. ':' .. k)
    local low = k ~= '' and call('ZRANGE', order, 0, 0)[1]
    if low then
      local high = tonumber(call('ZRANGE', order, -1, -1)[1])
      first, last = math.min(first or high, tonumber(low)), math.max(last or high, high)
    end
  end
end
return done(first and {first, last} or {})

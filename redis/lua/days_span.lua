-- needs: env days_index
-- The first and the last day there is something of.
--
-- ARGV[2]  kind, '' for all   ARGV[3…] indexes: days, gone
-- reply    {first day, last day}, {} if there is none
-- cost     O(kinds · log n)

local kinds, first, last = {ARGV[2]}, nil, nil
if ARGV[2] == '' then kinds = call('SMEMBERS', key('firsts')) end
for i = 3, #ARGV do
  for _, kind in ipairs(kinds) do
    local line = key(ARGV[i] .. ':' .. kind)
    local low = kind ~= '' and call('ZRANGE', line, 0, 0)[1]
    if low then
      local high = tonumber(call('ZRANGE', line, -1, -1)[1])
      first, last = math.min(first or high, tonumber(low)), math.max(last or high, high)
    end
  end
end
return done(first and {first, last} or {})

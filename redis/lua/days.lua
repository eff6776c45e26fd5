-- The sets of users of days.
--
-- ARGV[2]  kind, '' for all   ARGV[3] first day   ARGV[4] last day
-- reply    {day, set, …} in no order, a day once for each kind: B and a bitmap
--          with the lowest number in the highest bit, or S and numbers of 4 bytes
-- cost     O(days with marks + size of the sets)

local kind, from, to, out = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), {}
for _, field in ipairs(call('HKEYS', key('days'))) do
  local k, d = string.match(field, '^(.*):(%-?%d+)$')
  d = tonumber(d)
  if (kind == '' or k == kind) and d >= from and d <= to then
    local name = key('day:' .. field)
    out[#out + 1] = d
    if call('TYPE', name).ok == 'string' then
      out[#out + 1] = 'B' .. call('GET', name)
    else
      local members = call('SMEMBERS', name)
      for j = 1, #members do members[j] = struct.pack('>I4', members[j]) end
      out[#out + 1] = 'S' .. table.concat(members)
    end
  end
end
return done(out)

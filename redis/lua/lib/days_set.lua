-- packed is how a set of numbers stands in a reply: B and a bitmap with the
-- lowest number in the highest bit, or S and numbers of 4 bytes; '' if empty.
local function packed(name)
  local kind = call('TYPE', name).ok
  if kind == 'string' then return 'B' .. call('GET', name) end
  if kind == 'none' then return '' end
  local members = call('SMEMBERS', name)
  for j = 1, #members do members[j] = struct.pack('>I4', members[j]) end
  return 'S' .. table.concat(members)
end

-- Sets of numbers in a reply. Gives packedSet.

-- packedSet returns the set with a name: B and a bitmap with the lowest number in
-- the highest bit, or S and numbers of 4 bytes; '' if there is none.
local function packedSet(name)
  local kind = call('TYPE', name).ok
  if kind == 'string' then return 'B' .. call('GET', name) end
  if kind == 'none' then return '' end
  local members = call('SMEMBERS', name)
  for j = 1, #members do members[j] = struct.pack('>I4', members[j]) end
  return 'S' .. table.concat(members)
end

-- Kinds and the users whose record says one.

local function countKind(kind, by)
  if not kind or kind == '' then return end
  if call('HINCRBY', key('ofkind'), kind, by) <= 0 then call('HDEL', key('ofkind'), kind) end
end

-- Kinds and the users whose record says one.

local function countKind(kind, by)
  if not kind or kind == '' then return end
  if call('HINCRBY', key('kindusers'), kind, by) <= 0 then call('HDEL', key('kindusers'), kind) end
end

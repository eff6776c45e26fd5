-- Kinds of users. Gives countKind.

-- countKind changes how many records of users name a kind.
local function countKind(kind, by)
  if not kind or kind == '' then return end
  if call('HINCRBY', key('kindusers'), kind, by) <= 0 then call('HDEL', key('kindusers'), kind) end
end

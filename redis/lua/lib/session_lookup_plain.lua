-- A look at live sessions, in one piece. Needs glance.lua and the arguments of
-- session_lookup.lua. Gives no function: it answers, or leaves it to what follows.
--
-- It answers where all that are asked for live, none is hidden from the viewer, and none came
-- with a postponed deadline or has a timeout that stands among others. A test compares both ways.
repeat
  if not isPlain or (public and call('EXISTS', root .. ':hidden') == 1) then break end
  local out = {}
  for i, ref in ipairs(refs) do
    local sid = string.sub(ref, 2)
    if string.sub(ref, 1, 1) == 'T' then sid = call('HGET', root .. ':tokens:' .. string.sub(sid, 1, 1), string.sub(sid, 2)) end
    local blob = sid and call('HGET', root .. ':sessions', sid)
    if not blob then break end
    local version, idle, life = struct.unpack('>BI8I8', blob)
    if version ~= 1 then break end
    local seen = call('ZSCORE', root .. ':idle:' .. string.format('%.0f', idle), sid)
    if not seen then break end
    local expires = tonumber(seen) + idle
    if expires <= at or (life > 0 and struct.unpack('>I6', sid) + life <= at) then break end
    out[i] = {'live', sid, blob, seen, string.format('%.0f', expires)}
  end
  if #out == #refs then return out end
until true

-- needs: env event presence session_large session
-- Makes the user of a live session gone, unless another of their sessions was heard
-- within the window.
--
-- ARGV[2]  the window (s)
-- ARGV[3]  a reference: T and the first half of a token's hash, or I and an id
-- reply    one answer: {'live', id, record, seen, expires}, {'ended', id, end} or {'unknown'}
-- cost     O(log n), and O(1) for each session of a user who has not very many

local window, ref = tonumber(ARGV[2]), ARGV[3]

local sid = find(ref)
if not sid then return done({{'unknown'}}) end
local s = load(sid)
if not s or overdue(s) then return done({ended(sid)}) end

-- othersHeard takes a session of a user who has very many to have been heard.
local function othersHeard()
  local mine = key('u:' .. s.user)
  if call('ZCARD', mine) > mostLooked then return true end
  local heardSince = since(window) * 1000
  for _, other in ipairs(call('ZRANGE', mine, 0, -1)) do
    local o = other ~= sid and load(other)
    if o and not overdue(o) and o.seen >= heardSince then return true end
  end
  return false
end

advance()
settleSessions(s.user)
if not othersHeard() then hide(s.user, 'logout') end
return done({live(s)})

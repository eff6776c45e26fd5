-- needs: env bytes invisible event presence session_large session_read session due session_due
-- Makes the user of a live session gone, unless another of their sessions was heard
-- within the window.
--
-- returns  one answer: {'live', id, record, seen, expires}, {'ended', id, end} or
--          {'unknown'}
-- costs    O(log n), and O(1) for each session of a user who has not very many

local window = tonumber(ARGV[2]) -- s
local ref = ARGV[3] -- T and the first half of a token's hash, or I and an id

local sid = findSession(ref)
if not sid then return done({{'unknown'}}) end
local s = loadSession(sid)
if not s or endIfOverdue(s) then return done({endedReply(sid)}) end

-- othersHeard takes a session of a user who has very many to have been heard.
local function othersHeard()
  local mine = key('u:' .. s.user)
  if call('ZCARD', mine) > mostLooked then return true end
  local since = onlineSince(window) * 1000
  for _, other in ipairs(call('ZRANGE', mine, 0, -1)) do
    local o = other ~= sid and loadSession(other)
    if o and not endIfOverdue(o) and o.seen >= since then return true end
  end
  return false
end

-- What was due of the user before is told before they go.
advance()
endDueOf(s.user)
if not othersHeard() then setGone(s.user, 'logout') end
return done({liveReply(s)})

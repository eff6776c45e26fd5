-- The sessions of users who turned invisible, or visible again. Needs session.lua. Gives
-- updateVisibility and drainVisibility.
--
-- A user may have any number of sessions, so they follow step by step. The order
-- visibility has the users with sessions left, and the field visibility of a user's
-- record the session that was the last to follow. Lists write what is left before they
-- answer.

-- updateVisibility has sessions of a user follow, budget at most, and returns whether
-- some are left.
local function updateVisibility(user, budget)
  local mine, name = key('u:' .. user), key('user:' .. user)
  local cursor, hidden, rank = call('HGET', name, 'visibility') or '', invisible(user), 0
  if cursor ~= '' then rank = rankBehind(mine, false, num(struct.unpack('>I6', cursor)), cursor) end
  local sids = call('ZRANGE', mine, rank, rank + budget - 1)
  for _, sid in ipairs(sids) do
    local s = readSession(sid)
    if s and hidden then hideSession(s) elseif s then showSession(s) end
  end
  if #sids == budget then
    call('ZADD', key('visibility'), num(at), user)
    call('HSET', name, 'visibility', sids[budget])
    return true
  end
  call('HDEL', name, 'visibility')
  call('ZREM', key('visibility'), user)
  return false
end

-- drainVisibility does so for all users with sessions left, until it has looked at
-- about as many sessions as the budget says. It returns how many.
local function drainVisibility(budget)
  local n = 0
  while n < budget do
    local user = call('ZRANGE', key('visibility'), 0, 0)[1]
    if not user then return n end
    updateVisibility(user, budget)
    n = n + budget
  end
  return n
end

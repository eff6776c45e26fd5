-- The sessions of users who turned invisible, or visible again. Needs session.lua.
--
-- A user may have any number of sessions, so these follow step by step: veils has
-- the users of whom some are left, and the field veil of their record the session
-- that was the last to follow. Lists write what is left before they answer.

local function veilSome(user, budget)
  local mine, name = key('u:' .. user), key('user:' .. user)
  local cursor, hidden, rank = call('HGET', name, 'visibility') or '', invisible(user), 0
  if cursor ~= '' then rank = rankBehind(mine, false, num(struct.unpack('>I6', cursor)), cursor) end
  local sids = call('ZRANGE', mine, rank, rank + budget - 1)
  for _, sid in ipairs(sids) do
    local s = read(sid)
    if s and hidden then veil(s) elseif s then unveil(s) end
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

-- drainVeils does so for whoever is left, and returns how many sessions it looked
-- at, about.
local function drainVeils(budget)
  local n = 0
  while n < budget do
    local user = call('ZRANGE', key('visibility'), 0, 0)[1]
    if not user then return n end
    veilSome(user, budget)
    n = n + budget
  end
  return n
end

-- needs: env bytes invisible event presence session_large session_read session due session_due session_visibility kind
-- Changes the record of a user.
--
-- returns  {kind, name, invisible, 1 if sessions of the user have to follow}, the
--          first two false if never set
-- costs    O(log n)

local user = ARGV[2]
local changes = argumentsFrom(3) -- field, value, …: kind, name, invisible (0 or 1)

local name = key('user:' .. user)
local before = invisible(user)
local left = false

-- setInvisible turns a user invisible, or visible again. What is due of the user is
-- told first, so that each viewer is told of it as they see the user then.
local function setInvisible(turnsInvisible)
  endDueOf(user)
  local online = announceDue(user)
  local last = tonumber(call('ZSCORE', key('seen'), user) or 0)
  if turnsInvisible then
    makeInvisible(user)
    call('HSET', name, 'frozen', math.abs(last))
  else
    makeVisible(user)
    call('HDEL', name, 'frozen')
  end

  -- All sessions follow, from the first on; for the public the user comes or goes now.
  call('HDEL', name, 'visibility')
  left = updateVisibility(user, 32)
  if online then
    emit('pres', turnsInvisible and USER_OFFLINE or USER_ONLINE, user, {audience = FOR_PUBLIC})
  end
end

advance()
for i = 1, #changes, 2 do
  local field, value = changes[i], changes[i + 1]
  if field ~= 'invisible' then
    if field == 'kind' then
      countKind(call('HGET', name, 'kind'), -1)
      countKind(value, 1)
    end
    call('HSET', name, field, value)
  elseif (value == '1') ~= before then
    setInvisible(not before)
  end
end
local r = call('HMGET', name, 'kind', 'name')
return done({r[1], r[2], invisible(user) and 1 or 0, left and 1 or 0})

-- needs: env bytes event presence session_large session session_visibility kind_users
-- Changes the record of a user.
--
-- ARGV[2]   user
-- ARGV[3…]  field, value, …: kind, name, invisible (0 or 1)
-- reply     {kind, name, invisible, 1 if sessions of the user have to follow},
--           each of the first three false if never set
-- cost      O(log n)

local user = ARGV[2]
local name = key('user:' .. user)
local before = invisible(user)
local left = false
advance()
for i = 3, #ARGV, 2 do
  if ARGV[i] ~= 'invisible' then
    if ARGV[i] == 'kind' then
      countKind(call('HGET', name, 'kind'), -1)
      countKind(ARGV[i + 1], 1)
    end
    call('HSET', name, ARGV[i], ARGV[i + 1])
  elseif (ARGV[i + 1] == '1') ~= before then
    settleSessions(user)
    local online = settleUser(user)
    local last = tonumber(call('ZSCORE', key('seen'), user) or 0)
    if before then
      makeVisible(user)
      call('HDEL', name, 'frozen')
    else
      makeInvisible(user)
      call('HSET', name, 'frozen', math.abs(last))
    end
    call('HDEL', name, 'visibility') -- all sessions follow, from the first on
    left = veilSome(user, 32)
    if online then
      emit('pres', before and USER_ONLINE or USER_OFFLINE, user, {audience = FOR_PUBLIC})
    end
  end
end
local r = call('HMGET', name, 'kind', 'name')
return done({r[1], r[2], invisible(user) and 1 or 0, left and 1 or 0})

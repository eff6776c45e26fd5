-- Who was seen when. Needs event.lua.

-- hear is a sign of life of users, each named once.
local function hear(users)
  local seen, sec = key('seen'), num(math.floor(at / 1000)) -- as text, which calls take as it is
  advance()
  local add = {}
  for i = 1, #users do
    add[2 * i - 1], add[2 * i] = sec, users[i]
  end
  if presence == 0 then
    call('ZADD', seen, 'GT', unpack(add))
    return
  end
  local line = since(announced)
  local before = call('ZMSCORE', seen, unpack(users))
  call('ZADD', seen, 'GT', unpack(add))
  for i = 1, #users do
    local last = tonumber(before[i] or 0)
    if last < line or last < silent then
      if last >= silent and last > 0 then emit('pres', USER_OFFLINE, users[i]) end
      emit('pres', USER_ONLINE, users[i])
    end
  end
end

-- hide makes a user gone: offline until their next sign of life.
local function hide(user)
  local last = tonumber(call('ZSCORE', key('seen'), user) or 0)
  if last <= 0 then return end
  if presence == 1 and last >= silent then emit('pres', USER_OFFLINE, user) end
  call('ZADD', key('seen'), -last, user)
end

-- needs: env bytes invisible event presence
-- Forgets users who were last seen before a second.
--
-- returns  how many were forgotten; fewer than asked for when none is left
-- costs    O(log n) for each

local line = tonumber(ARGV[2]) -- the second
local budget = tonumber(ARGV[3]) -- users to forget

local seen = key('seen')
advance()

-- Those who count as online until they fall silent: tell of it if nobody has.
local users = call('ZRANGEBYSCORE', seen, 1, '(' .. line, 'WITHSCORES', 'LIMIT', 0, budget)
local names = {}
for i = 1, #users, 2 do
  local user, last = users[i], tonumber(users[i + 1])
  names[#names + 1] = user
  if presenceEvents == 1 and not isAnnounced(user, last) then
    emit('pres', USER_OFFLINE, user, {at = math.min(at, offlineAt(last))})
  end
end

-- Then those who logged out: their scores are negative.
if #names < budget then
  for _, user in ipairs(call('ZRANGEBYSCORE', seen, '(-' .. line, -1, 'LIMIT', 0, budget - #names)) do
    names[#names + 1] = user
  end
end
if #names > 0 then
  call('ZREM', seen, unpack(names))
  if anyHidden() then
    local none = {}
    for i, user in ipairs(names) do none[2 * i - 1], none[2 * i] = 0, user end
    call('ZADD', key('hidden'), 'XX', unpack(none))
  end
  call('SREM', key('announced'), unpack(names))
end
return done(#names)

-- needs: env
-- Records a sign of life of users.
--
-- returns  1
-- costs    O(log n) for each

local users = argumentsFrom(2) -- each once

-- Who was offline before this is announced behind it. Most who come back were announced
-- offline in the order of their last signs of life, or never seen. Of any other something has
-- to be told first: recordBeat does that. It is made only then, as Redis makes the functions
-- of a script anew with every run.
local seen = root .. ':seen'
local back, told = {}, 0
if presenceEvents == 1 then
  local line, scores = math.max(onlineSince(offlineWindow), offlineBefore), call('ZMSCORE', seen, unpack(users))
  local someLoggedOut
  for i = 1, #users do
    local last = tonumber(scores[i] or 0)
    if last < line then
      if last <= 0 and someLoggedOut == nil then someLoggedOut = call('EXISTS', root .. ':loggedout') == 1 end
      if last >= offlineBefore or (last <= 0 and someLoggedOut and call('ZSCORE', root .. ':loggedout', users[i])) then
        -- needs: bytes invisible event presence
        recordBeat(users)
        return done(1)
      end
      told = told + 1
      back[told] = users[i]
      if last > 0 then call('SREM', root .. ':announced', users[i]) end
    end
  end
end

-- All of them were seen in this second.
local second, add = num(math.floor(at / 1000)), {}
for i = 1, #users do add[2 * i - 1], add[2 * i] = second, users[i] end
call('ZADD', seen, 'GT', unpack(add))

-- Invisible users count for nobody.
local hidden, visible = root .. ':hidden', #users
local someHidden = call('EXISTS', hidden) == 1
if someHidden then
  call('ZADD', hidden, 'XX', 'GT', unpack(add))
  for _, score in ipairs(call('ZMSCORE', hidden, unpack(users))) do
    if score then visible = visible - 1 end
  end
end
advance()
setState('beats', num(beats + visible))

-- The events of those who are back, as emit writes them.
if told > 0 then
  if not micros then
    local t = call('TIME')
    micros = t[1] * 1000000 + t[2]
  end
  lastEvent = math.max(lastEvent, micros - 1)
  local pres, lastPublic = root .. ':pres', nil
  for i = 1, told do
    local user, audience = back[i], 0
    lastEvent = lastEvent + 1
    local place = num(lastEvent)
    if someHidden and call('ZSCORE', hidden, user) then audience = 1 else lastPublic = place end
    call('XADD', pres, place .. '-0', 'e', struct.pack('>BBI8Bc0BBI2B', 2, audience, at, #user, user, 0, 0, 0, 0))
  end
  setState('lastevent', num(lastEvent))
  if lastPublic then setState('lastpublic', lastPublic) end
end
return done(1)

-- Users with more sessions than one script looks at. Needs env.lua; session.lua
-- has their sessions enter these orders and leave them.
--
-- Such a user is large, until the last of these sessions has ended. Each session of
-- a large user stands in further orders, so that a login finds who is due and who
-- has to make room without a look at all:
--
-- us:<user>          by last sign of life
-- ui:<user>          by the deadline that idleness gives, before outages extend it
-- ue:<user>          by absolute end
-- ul:<class>:<user>  of a device class, by login; the class stands behind its length
-- uc:<class>:<user>  of a device class, by last sign of life

local mostLooked = 64 -- sessions of a user that one script looks at

local largeKnown = {}

local function isLarge(user)
  if large == 0 then return false end
  if largeKnown[user] == nil then largeKnown[user] = call('EXISTS', key('us:' .. user)) == 1 end
  return largeKnown[user]
end

local function ofClass(order, class, user) return key(order .. ':' .. #class .. ':' .. class .. ':' .. user) end

local function countLarge(by)
  large = large + by
  set('largeusers', num(large))
end

-- enlist makes a session of a large user stand in these orders.
local function enlist(s)
  call('ZADD', key('us:' .. s.user), s.seen, s.id)
  call('ZADD', key('ui:' .. s.user), math.max(s.seen + s.idle, s.postponed or 0), s.id)
  if s.life > 0 then call('ZADD', key('ue:' .. s.user), s.login + s.life, s.id) else call('ZREM', key('ue:' .. s.user), s.id) end
  call('ZADD', ofClass('ul', s.device, s.user), s.login, s.id)
  call('ZADD', ofClass('uc', s.device, s.user), s.seen, s.id)
end

-- delist takes a session that ended out of them.
local function delist(s)
  if not isLarge(s.user) then return end
  for _, order in ipairs({key('us:' .. s.user), key('ui:' .. s.user), key('ue:' .. s.user), ofClass('ul', s.device, s.user), ofClass('uc', s.device, s.user)}) do
    call('ZREM', order, s.id)
  end
  if call('EXISTS', key('us:' .. s.user)) == 0 then
    largeKnown[s.user] = false
    countLarge(-1)
  end
end

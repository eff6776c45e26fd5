-- Users with more sessions than one script looks at. Gives mostLooked, isLarge, ofClass,
-- becomeLarge, addToLargeOrders and removeFromLargeOrders; session.lua calls them.
--
-- The problem: a login has to find which sessions are past their deadline and which ones
-- have to make room, and must not look at all of thousands.
--
-- A user who has had more than mostLooked sessions is large until the last session has
-- ended. Each session of a large user stands in further orders:
--
-- us:<user>          by last sign of life
-- ui:<user>          by idle deadline, before outages postpone it
-- ue:<user>          by absolute end
-- ul:<n>:<device>:<user>  of a device class, which has n bytes, by login
-- uc:<n>:<device>:<user>  of a device class, by last sign of life

local mostLooked = 64 -- sessions of a user that one script looks at

local isLarge, becomeLarge, becomeSmall

do
  local known = {} -- user -> whether they are large

  local function countLarge(by)
    largeUsers = largeUsers + by
    setState('largeusers', num(largeUsers))
  end

  function isLarge(user)
    if largeUsers == 0 then return false end
    if known[user] == nil then known[user] = call('EXISTS', key('us:' .. user)) == 1 end
    return known[user]
  end

  function becomeLarge(user)
    known[user] = true
    countLarge(1)
  end

  function becomeSmall(user)
    known[user] = false
    countLarge(-1)
  end
end

local function ofClass(order, class, user) return key(order .. ':' .. #class .. ':' .. class .. ':' .. user) end

-- addToLargeOrders adds a session of a large user to these orders.
local function addToLargeOrders(s)
  call('ZADD', key('us:' .. s.user), s.seen, s.id)
  call('ZADD', key('ui:' .. s.user), math.max(s.seen + s.idle, s.postponed or 0), s.id)
  if s.life > 0 then call('ZADD', key('ue:' .. s.user), s.login + s.life, s.id) else call('ZREM', key('ue:' .. s.user), s.id) end
  call('ZADD', ofClass('ul', s.device, s.user), s.login, s.id)
  call('ZADD', ofClass('uc', s.device, s.user), s.seen, s.id)
end

-- removeFromLargeOrders removes a session that ended from them.
local function removeFromLargeOrders(s)
  if not isLarge(s.user) then return end
  for _, order in ipairs({key('us:' .. s.user), key('ui:' .. s.user), key('ue:' .. s.user), ofClass('ul', s.device, s.user), ofClass('uc', s.device, s.user)}) do
    call('ZREM', order, s.id)
  end
  if call('EXISTS', key('us:' .. s.user)) == 0 then becomeSmall(s.user) end
end

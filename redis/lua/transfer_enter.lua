-- needs: env invisible event session_large session_read session days_index days kind
-- Enters what another engine knew of users of whom nothing is known here: several
-- small snapshots, each whole, or a part of a large one.
--
-- returns  {}, or {user} if something of theirs is known: it and those behind it are
--          not entered
-- costs    O(log n) for each entry; the caller bounds them

-- For each snapshot: 0 for all of a user, or of a large one 1 to check a part, 2 for
-- the first part, 3 for one behind it, 4 for the last one; user, '' for what is left of
-- erased ones; kind; name; 1 if invisible; frozen, s; last seen, s, negative if they
-- logged out, '' for none; key of a ban of the user. Then five lists, each behind its
-- length: friend, since, … · kind, day, … of marks · id, record, last sign of life, …
-- of sessions · id, end, when, token's hash, … of ended ones · key, ban, …
local arguments = argumentsFrom(2)

local ALL, CHECK, FIRST, LAST = '0', '1', '2', '4'
local cursor, phase, user = 1, nil, nil

-- take returns the next argument.
local function take()
  cursor = cursor + 1
  return arguments[cursor - 1]
end

-- each hands the elements of the next list to fn, until it returns false.
local function each(width, fn)
  local n, from = tonumber(take()), cursor
  cursor = from + n * width
  for i = from, cursor - 1, width do
    if fn(arguments[i], arguments[i + 1], arguments[i + 2], arguments[i + 3]) == false then return false end
  end
  return true
end

local function nothing() end

-- isKnown reports whether anything is known of the user. One whose import was cut
-- short is unknown to those who begin it anew.
local function isKnown(banKey)
  if user == '' or (phase ~= ALL and call('EXISTS', key('importing:' .. user)) == 1) then return false end
  if call('EXISTS', key('user:' .. user), key('u:' .. user), key('f:' .. user), key('importing:' .. user), key('erasure:' .. user)) > 0
    or call('ZSCORE', key('seen'), user) or call('HEXISTS', key('num'), user) == 1 or invisible(user) then
    return true
  end
  local ban = call('HGET', key('bans'), banKey)
  return ban and at < struct.unpack('>I8', ban)
end

-- areFree reports whether no session of the lists is known.
local function areFree()
  if user ~= '' and call('EXISTS', key('importing:' .. user)) == 1 then return true end
  return each(2, nothing) and each(2, nothing) and each(3, function(sid, blob)
    if call('HEXISTS', key('sessions'), sid) == 1 or call('EXISTS', key('end:' .. sid)) == 1 then return false end
    return call('HEXISTS', tokenPlace(unpackSession(sid, blob).token)) == 0
  end) and each(4, function(sid) return call('HEXISTS', key('sessions'), sid) == 0 end)
end

local function enterUser(kind, userName, hidden, frozen, last)
  local name = key('user:' .. user)
  if kind ~= '' then
    countKind(call('HGET', name, 'kind'), -1)
    call('HSET', name, 'kind', kind)
    countKind(kind, 1)
  end
  if userName ~= '' then call('HSET', name, 'name', userName) end
  if last ~= '' then call('ZADD', key('seen'), last, user) end
  if hidden == '1' then
    makeInvisible(user)
    call('HSET', name, 'frozen', frozen)
  end
end

local function enterFriends()
  local add = {}
  each(2, function(friend, since)
    add[#add + 1] = since
    add[#add + 1] = friend
  end)
  if #add > 0 then call('HINCRBY', part, 'edges', call('ZADD', key('f:' .. user), unpack(add))) end
end

local function enterSession(sid, blob, seen)
  local s = unpackSession(sid, blob)
  s.seen = tonumber(seen)
  -- What put the deadline off holds no longer than an outage here would.
  if s.postponed then
    s.postponed = math.min(s.postponed, at + grace)
    if s.postponed <= s.seen + s.idle then s.postponed = nil end
    s.blob = packSession(s)
  end
  storeSession(s)
end

local function enterEnded(sid, blob, t, token)
  local left = endedKept - math.max(0, at - tonumber(t))
  if left <= 0 then return end
  call('SET', key('end:' .. sid), blob, 'PX', left)
  call('SET', key('tok:' .. token), sid, 'PX', left)
  if user ~= '' then
    call('ZADD', key('e:' .. user), t, sid)
    call('PEXPIRE', key('e:' .. user), endedKept)
  end
end

local function enterBan(ban, blob)
  call('HINCRBY', part, 'banchange', 1)
  call('HSET', key('bans'), ban, blob)
  call('ZADD', key('banends'), num(struct.unpack('>I8', blob)), ban)
end

local function enter(kind, userName, hidden, frozen, last)
  if phase == FIRST then call('SET', key('importing:' .. user), '') end
  if user ~= '' and (phase == ALL or phase == FIRST) then enterUser(kind, userName, hidden, frozen, last) end
  enterFriends()
  local n
  each(2, function(of, day)
    n = n or numberFor(user)
    mark(n, of, day)
  end)
  each(3, enterSession)
  each(4, enterEnded)
  each(2, enterBan)
  if phase == LAST then call('DEL', key('importing:' .. user)) end
end

-- One snapshot after the other. Check it first, then go back and enter it.
advance()
while cursor <= #arguments do
  phase, user = take(), take()
  local kind, userName, hidden, frozen, last, banKey = take(), take(), take(), take(), take(), take()
  local lists = cursor
  if phase == ALL or phase == CHECK then
    if isKnown(banKey) or not areFree() then return done({user}) end
    cursor = lists
  end
  if phase == CHECK then
    for _, width in ipairs({2, 2, 3, 4, 2}) do each(width, nothing) end
  else
    enter(kind, userName, hidden, frozen, last)
  end
end
return done({})

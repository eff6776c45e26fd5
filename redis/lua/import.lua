-- Enters all that another engine knew of a user of whom nothing is known here.
--
-- ARGV[2]  user, '' for what is left of erased ones
-- ARGV[3]  kind   ARGV[4] name   ARGV[5] 1 if invisible   ARGV[6] frozen, s
-- ARGV[7]  last seen, s, negative while gone; '' for none
-- ARGV[8]  key of a ban of the user
-- ARGV[9…] how many friends follow, friend, since, …; how many marks, kind, day,
--          …; how many sessions, id, record, last sign of life, …; how many ended
--          ones, id, end, when, token's hash, …; how many bans, key, ban, …
-- reply    1, or 0 and nothing changed if something of it is known
-- cost     O(log n) for each

local user, first = ARGV[2], 9
local at1 = first

-- each hands the elements of the next list to fn.
local function each(width, fn)
  local n = tonumber(ARGV[at1])
  for i = 0, n - 1 do
    local from = at1 + 1 + i * width
    if fn(ARGV[from], ARGV[from + 1], ARGV[from + 2], ARGV[from + 3]) == false then return false end
  end
  at1 = at1 + 1 + n * width
  return true
end

local function known()
  if user ~= '' and (call('EXISTS', key('user:' .. user)) == 1 or call('EXISTS', key('u:' .. user)) == 1
    or call('EXISTS', key('f:' .. user)) == 1 or call('ZSCORE', key('seen'), user) or call('HEXISTS', key('num'), user) == 1
    or invisible(user)) then
    return true
  end
  local banned = user ~= '' and call('HGET', key('bans'), ARGV[8])
  if banned and at < struct.unpack('>I8', banned) then return true end
  local free = each(2, function() end) and each(2, function() end) and each(3, function(sid, blob)
    if call('EXISTS', key('s:' .. sid)) == 1 or call('EXISTS', key('end:' .. sid)) == 1 then return false end
    local held = call('GET', key('tok:' .. open(sid, blob).token))
    return not (held and call('EXISTS', key('s:' .. held)) == 1)
  end) and each(4, function(sid) return call('EXISTS', key('s:' .. sid)) == 0 end)
  at1 = first
  return not free
end

if known() then return done(0) end
advance()
if user ~= '' then
  local name = key('user:' .. user)
  if ARGV[3] ~= '' then
    call('HSET', name, 'kind', ARGV[3])
    countKind(ARGV[3], 1)
  end
  if ARGV[4] ~= '' then call('HSET', name, 'name', ARGV[4]) end
  if ARGV[5] == '1' then
    call('SADD', key('hidden'), user)
    call('HSET', name, 'frozen', ARGV[6])
  end
  if ARGV[7] ~= '' then call('ZADD', key('seen'), ARGV[7], user) end
end
local friends = tonumber(ARGV[at1])
local add = {}
each(2, function(friend, since)
  add[#add + 1] = since
  add[#add + 1] = friend
  if #add == 1000 or #add == 2 * friends then
    call('ZADD', key('f:' .. user), unpack(add))
    friends, add = friends - #add / 2, {}
  end
end)
if ARGV[first] ~= '0' then call('HINCRBY', part, 'edges', ARGV[first]) end
each(2, function(kind, day) mark(number(user), kind, day) end)
each(3, function(sid, blob, seen)
  local s = open(sid, blob)
  s.seen = tonumber(seen)
  -- What put the deadline off holds no longer than an outage here would.
  if s.late then
    s.late = math.min(s.late, at + grace)
    if s.late <= s.seen + s.idle then s.late = nil end
    blob = pack(s)
  end
  call('SET', key('s:' .. sid), blob)
  call('SET', key('tok:' .. s.token), sid)
  call('ZADD', key('login'), s.login, sid)
  call('ZADD', key('u:' .. user), s.login, sid)
  if s.deviceID ~= '' then call('HSET', key('d:' .. user), s.deviceID, sid) end
  index(s, 'ZADD')
  place(s)
end)
each(4, function(sid, blob, t, token)
  local left = keep - math.max(0, at - tonumber(t))
  if left <= 0 then return end
  call('SET', key('end:' .. sid), blob, 'PX', left)
  call('SET', key('tok:' .. token), sid, 'PX', left)
  if user ~= '' then
    call('ZADD', key('e:' .. user), t, sid)
    call('PEXPIRE', key('e:' .. user), keep)
  end
end)
each(2, function(ban, blob)
  call('HSET', key('bans'), ban, blob)
  call('ZADD', key('banned'), num(struct.unpack('>I8', blob)), ban)
end)
return done(1)

-- needs: env bytes event presence session_large session days_index days policy
-- Begins a session: refuses the banned, replaces the session of the same
-- device, keeps the policy's limits, and stores the session with its indexes,
-- its beat, its mark and its events.
--
-- ARGV[2]   policies, packed; the last one matches everything
-- ARGV[3]   user             ARGV[4]   ban key
-- ARGV[5]   kind, '' for the user's own
-- ARGV[6]   name, '' for the user's own
-- ARGV[7]   app              ARGV[8]   device
-- ARGV[9]   device id        ARGV[10]  address, raw
-- ARGV[11]  rest of the record
-- ARGV[12]  token's hash     ARGV[13]  8 random bytes     ARGV[14] home, 2 bytes
-- ARGV[15]  day to mark, ''  for none
-- ARGV[16]  retry key, '' for none   ARGV[17] request   ARGV[18] nonce
-- ARGV[19]  how long a retry is answered, ms
-- ARGV[20]  1 if the kind is known to all
-- ARGV[21]  ids of sessions that end with the login, packed
-- ARGV[22]  how many sessions in the way are named at most
-- ARGV[23]  how many sessions one script ends for each limit to make room, at most
-- ARGV[24]  ids that earlier steps of the login ended, packed
-- reply     {'ok', id, record, seen, expires, ids that made room}
--           {'again', nonce, ids that made room, <a session as in session_lookup.lua>}
--           {'banned', ban} {'conflict'}
--           {'limit', n, {id, app, device, seen} of the sessions in the way,
--           newest login first}
--           {'kind'} if the kind is not known and nothing else refuses the
--           login
--           {'erasing', note} if the user is still being erased: that is to be
--           finished first, so that the login is a new user's
--           {'cutoff'} if ends of the user have to be written first
--           {'more', ids} if so many sessions have to go that these were ended ahead
--           of the login, which is to be sent again; none of them would have stayed
-- cost      O(log n) for each session that ends or is named, of a bounded number

local EVICT_IDLE, REJECT = 1, 2
local policies, user, banKey, retry = ARGV[2], ARGV[3], ARGV[4], ARGV[16]

if retry ~= '' then
  local before = call('GET', key('retry:' .. retry))
  if before then
    local t, request, nonce, sid, evicted = struct.unpack('>I8c32c32c16I4c0', before)
    if at < t + tonumber(ARGV[19]) then
      if request ~= ARGV[17] then return done({'conflict'}) end
      local s = load(sid)
      local answer
      if s and not overdue(s) then answer = live(s) else answer = ended(sid) end
      return done({'again', nonce, evicted, answer})
    end
  end
end

do -- a longer note is that of a user who is gone, see user_erasure.lua
  local note = call('GET', key('erasure:' .. user))
  if note and #note == 32 then return done({'erasing', note}) end
end
if cutoffs > 0 and #readCutoff(user) > 0 then return done({'cutoff'}) end

local ban = call('HGET', key('bans'), banKey)
if ban and at < struct.unpack('>I8', ban) then return done({'banned', ban}) end

local record = call('HMGET', key('user:' .. user), 'kind', 'name')
local s = {
  user = user, app = ARGV[7], device = ARGV[8], deviceID = ARGV[9], ip = ARGV[10], token = ARGV[12],
  kind = ARGV[5] ~= '' and ARGV[5] or record[1] or 'user',
}
local name = ARGV[6] ~= '' and ARGV[6] or record[2] or ''
s.rest = struct.pack('>Bc0', #name, name) .. ARGV[11]
local policy = policyFor(policies, s.kind, s.app, s.device)
s.idle, s.life = policy.idle, policy.life

-- Who goes in any case: the session of the same device, then those that are named.
local evict, leaving = {}, {}

local function leave(other)
  if not other or leaving[other.id] then return end
  leaving[other.id] = true
  evict[#evict + 1] = other
end

-- mine loads a live session of the user; nil if it is none.
local function mine(sid)
  local other = load(sid)
  if other and other.user == user and not overdue(other) then return other end
end

settleSessions(user)
local same = s.deviceID ~= '' and call('HGET', key('d:' .. user), s.deviceID)
if same then leave(mine(same)) end
local named, asked = {}, {}
for i = 1, #ARGV[21], 16 do named[string.sub(ARGV[21], i, i + 15)] = true end
for sid in pairs(named) do asked[#asked + 1] = mine(sid) end
table.sort(asked, function(a, b) return isBefore(a.id, b.id) end)
for _, other in ipairs(asked) do leave(other) end
local inAnyCase = #evict

-- The user's sessions are looked at only if a limit may be reached, and one by one
-- only if they are few: all has them then. The orders of a large user say the rest.
local most, all = tonumber(ARGV[23]), nil
local count = call('ZCARD', key('u:' .. user))
if (policy.max > 0 and count >= policy.max) or (policy.maxDevice > 0 and count >= policy.maxDevice) then
  if not isLarge(user) then
    all = sessionsOf(user)
  elseif settleLarge(user, most) then
    return done({'more', ''})
  end
end

-- staying returns how many of the user's sessions, of a device class or all, do not
-- leave.
local function staying(class)
  local n = 0
  if all then
    for _, other in ipairs(all) do
      if not class or other.device == class then n = n + 1 end
    end
  else
    n = call('ZCARD', class and ofClass('ul', class, user) or key('u:' .. user))
  end
  for _, other in ipairs(evict) do
    if not class or other.device == class then n = n - 1 end
  end
  return n
end

local orders = {
  oldest = function(a, b) return isBefore(a.id, b.id) end,
  newest = function(a, b) return isBefore(b.id, a.id) end,
  idle = function(a, b)
    if a.seen ~= b.seen then return a.seen < b.seen end
    return isBefore(a.id, b.id)
  end,
}

-- first returns the first of them in an order.
local function first(n, class, order)
  local out = {}
  if all then
    for _, other in ipairs(all) do
      if not leaving[other.id] and (not class or other.device == class) then out[#out + 1] = other end
    end
    table.sort(out, orders[order])
    for i = #out, n + 1, -1 do out[i] = nil end
    return out
  end
  local name = order == 'idle' and key('us:' .. user) or key('u:' .. user)
  if class then name = ofClass(order == 'idle' and 'uc' or 'ul', class, user) end
  for _, sid in ipairs(rangeOf(name, order == 'newest', 0, n + #evict - 1)) do
    if #out < n and not leaving[sid] then out[#out + 1] = load(sid) end
  end
  return out
end

-- makeRoom has sessions leave until one more fits a limit. It returns the reply if
-- the login ends here: refused, or to be sent again behind ends that are too many.
local function makeRoom(limit, class)
  local over = limit > 0 and staying(class) - limit + 1 or 0
  if over <= 0 then return nil end
  if policy.overflow == REJECT then
    local reply = {'limit', limit}
    for _, other in ipairs(first(tonumber(ARGV[22]), class, 'newest')) do
      reply[#reply + 1] = {other.id, other.app, other.device, num(other.seen)}
    end
    return reply
  end
  if over > most and ARGV[20] ~= '1' then return {'kind'} end
  local gone = {}
  for i, other in ipairs(first(math.min(over, most), class, policy.overflow == EVICT_IDLE and 'idle' or 'oldest')) do
    if over > most then finish(other, at, 'replaced') else leave(other) end
    gone[i] = other.id
  end
  if over > most then return {'more', table.concat(gone)} end
end

local refusal = makeRoom(policy.maxDevice, s.device) or makeRoom(policy.max, nil)
if refusal then return done(refusal) end

if ARGV[20] ~= '1' then return done({'kind'}) end

-- Ids made in one partition ascend, also within a millisecond.
advance()
local begins = struct.pack('>I6', at) .. ARGV[13]
local newest = call('HGET', part, 'newestid')
if newest and not isBefore(newest, begins) and string.sub(begins, 1, 6) == string.sub(newest, 1, 6) then
  local high, low = struct.unpack('>I4I4', newest, 7)
  low = low + 1
  if low > 4294967295 then high, low = high + 1, 0 end
  begins = string.sub(newest, 1, 6) .. struct.pack('>I4I4', high % 4294967296, low)
end
set('newestid', begins)
s.id = begins .. ARGV[14]
s.login = struct.unpack('>I6', s.id)
s.seen = s.login
s.blob = pack(s)

local gone = {}
for i = 1, #evict + 1 do
  if i == inAnyCase + 1 then gone[#gone + 1] = ARGV[24] end
  if evict[i] then
    gone[#gone + 1] = evict[i].id
    finish(evict[i], at, 'replaced')
  end
end
gone = table.concat(gone)
store(s)
emit('log', SESSION_STARTED, user, {sid = s.id})
hear({user})
if ARGV[15] ~= '' then mark(number(user), s.kind, ARGV[15]) end
if retry ~= '' then
  call('SET', key('retry:' .. retry), struct.pack('>I8c32c32c16I4c0', at, ARGV[17], ARGV[18], s.id, #gone, gone), 'PX', ARGV[19])
end
local answer = live(s)
answer[1], answer[6] = 'ok', gone
return done(answer)

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
-- reply     {'ok', id, record, seen, expires, ids that made room}
--           {'again', nonce, ids that made room, <a session as in lookup.lua>}
--           {'banned', ban} {'conflict'}
--           {'limit', n, {id, app, device, seen} of the sessions in the way,
--           newest login first}
--           {'kind'} if the kind is not known and nothing else refuses the
--           login
--           {'cutoff'} if ends of the user have to be written first
-- cost      O(log n), and O(sessions of the user · log n) if they reach a limit

local EVICT_IDLE, REJECT = 1, 2
local policies, user, banKey, retry = ARGV[2], ARGV[3], ARGV[4], ARGV[16]

if retry ~= '' then
  local before = call('GET', key('retry:' .. retry))
  if before then
    local t, request, nonce, sid, evicted = struct.unpack('>I8c32c32c16I2c0', before)
    if at < t + tonumber(ARGV[19]) then
      if request ~= ARGV[17] then return done({'conflict'}) end
      local s = load(sid)
      local answer
      if s and not overdue(s) then answer = live(s) else answer = ended(sid) end
      return done({'again', nonce, evicted, answer})
    end
  end
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

local named = {}
for i = 1, #ARGV[21], 16 do named[string.sub(ARGV[21], i, i + 15)] = true end
local evict, asked, others = {}, {}, {}

-- mine loads a live session of the user; nil if it is none.
local function mine(sid)
  local other = load(sid)
  if other and other.user == user and not overdue(other) then return other end
end

-- The user's sessions are looked at one by one only if a limit may be reached:
-- they may be thousands.
settleSessions(user)
local count = call('ZCARD', key('u:' .. user))
if (policy.max > 0 and count >= policy.max) or (policy.maxDevice > 0 and count >= policy.maxDevice) then
  for _, other in ipairs(sessionsOf(user)) do -- by login
    if s.deviceID ~= '' and other.deviceID == s.deviceID then
      evict[#evict + 1] = other
    elseif named[other.id] then
      asked[#asked + 1] = other
    else
      others[#others + 1] = other
    end
  end
else
  local same = s.deviceID ~= '' and call('HGET', key('d:' .. user), s.deviceID)
  if same then
    evict[1] = mine(same)
    named[same] = nil
  end
  for sid in pairs(named) do asked[#asked + 1] = mine(sid) end
  table.sort(asked, function(a, b) return isBefore(a.id, b.id) end)
end
for _, other in ipairs(asked) do evict[#evict + 1] = other end
table.sort(others, function(a, b)
  if policy.overflow == EVICT_IDLE and a.seen ~= b.seen then return a.seen < b.seen end
  return isBefore(a.id, b.id)
end)

-- inTheWay refuses the login and names the sessions that a limit counts.
local function inTheWay(limit, counts)
  table.sort(others, function(a, b) return isBefore(b.id, a.id) end)
  local reply = {'limit', limit}
  for _, other in ipairs(others) do
    if #reply - 2 >= tonumber(ARGV[22]) then break end
    if counts(other) then reply[#reply + 1] = {other.id, other.app, other.device, num(other.seen)} end
  end
  return done(reply)
end

-- makeRoom lets sessions go until one more fits a limit; false if none may.
local function makeRoom(limit, counts)
  local n, stay = 0, {}
  for _, other in ipairs(others) do
    if counts(other) then n = n + 1 end
  end
  if limit == 0 or n < limit then return true end
  if policy.overflow == REJECT then return false end
  for _, other in ipairs(others) do
    if n >= limit and counts(other) then
      n = n - 1
      evict[#evict + 1] = other
    else
      stay[#stay + 1] = other
    end
  end
  others = stay
  return true
end

local function sameDevice(other) return other.device == s.device end
local function any() return true end
if not makeRoom(policy.maxDevice, sameDevice) then return inTheWay(policy.maxDevice, sameDevice) end
if not makeRoom(policy.max, any) then return inTheWay(policy.max, any) end

if ARGV[20] ~= '1' then return done({'kind'}) end

-- Ids made in one partition ascend, also within a millisecond.
advance()
local begins = struct.pack('>I6', at) .. ARGV[13]
local newest = call('HGET', part, 'newest')
if newest and not isBefore(newest, begins) and string.sub(begins, 1, 6) == string.sub(newest, 1, 6) then
  local high, low = struct.unpack('>I4I4', newest, 7)
  low = low + 1
  if low > 4294967295 then high, low = high + 1, 0 end
  begins = string.sub(newest, 1, 6) .. struct.pack('>I4I4', high % 4294967296, low)
end
set('newest', begins)
s.id = begins .. ARGV[14]
s.login = struct.unpack('>I6', s.id)
s.seen = s.login
s.blob = pack(s)

local gone = {}
for i, other in ipairs(evict) do
  gone[i] = other.id
  finish(other, at, 'replaced')
end
gone = table.concat(gone)
store(s)
emit('log', SESSION_STARTED, user, {sid = s.id})
hear({user})
if ARGV[15] ~= '' then mark(number(user), s.kind, ARGV[15]) end
if retry ~= '' then
  call('SET', key('retry:' .. retry), struct.pack('>I8c32c32c16I2c0', at, ARGV[17], ARGV[18], s.id, #gone, gone), 'PX', ARGV[19])
end
local answer = live(s)
answer[1], answer[6] = 'ok', gone
return done(answer)

-- needs: env
-- Starts a session. It refuses a user who is banned, replaces the session of the same
-- device, keeps the policy's limits, and stores the session with its indexes, its
-- beat, its mark and its events.
--
-- returns  {'ok', id, record, seen, expires, ids that made room}
--          {'again', nonce, ids that made room, <a session as in session_lookup.lua>}
--          {'banned', ban} {'conflict'}
--          {'limit', n, {id, app, device, seen} of the sessions in the way, newest
--          login first}
--          {'kind'} if the kind is not known and nothing else refuses the login
--          {'erasing', note} if the user is still being erased: that is to be finished
--          first, so that the login makes a new user
--          {'cutoff'} if ends of the user have to be written first
--          {'more', ids} if very many sessions have to go: these were ended ahead of the
--          login, which is to be sent again; none of them would have stayed. A server
--          that dies between two steps leaves those ended and no login
-- costs    O(log n) for each session that ends or is named, of a bounded number

local policies = ARGV[2] -- packed; the last one matches everything
local user, banKey = ARGV[3], ARGV[4]
local kind, userName = ARGV[5], ARGV[6] -- '' for the user's own
local app, device, deviceID = ARGV[7], ARGV[8], ARGV[9]
local address = ARGV[10] -- its bytes
local rest = ARGV[11] -- of the record
local tokenHash = ARGV[12] -- its first half
local random, home = ARGV[13], ARGV[14] -- the end of the id: 8 bytes and 2
local day = ARGV[15] -- to mark, '' for none
local retry, retryRequest, nonce = ARGV[16], ARGV[17], ARGV[18] -- the retry key, '' for none; what it stands for; what names this login
local retryKept = ARGV[19] -- how long a retry is answered, ms
local kindIsKnown = ARGV[20] == '1' -- to all servers
local evictIDs = ARGV[21] -- sessions that end with the login, packed
local mostNamed = tonumber(ARGV[22]) -- sessions in the way that are named
local most = tonumber(ARGV[23]) -- sessions that one script ends for each limit to make room
local endedAhead = ARGV[24] -- ids that earlier steps of the login ended, packed
local month = ARGV[25] -- of the day: year * 100 + month

-- needs: session_start_plain
-- Any other login.
-- needs: bytes invisible event presence session_large session_read session due session_due days_index days policy

local EVICT_IDLE, REJECT = 1, 2

-- A repeated login gets the first answer.
if retry ~= '' then
  local before = call('GET', key('retry:' .. retry))
  if before then
    local t, stood, firstNonce, sid, evicted = struct.unpack('>I8c32c32c16I4c0', before)
    if at < t + tonumber(retryKept) then
      if stood ~= retryRequest then return done({'conflict'}) end
      local s = loadSession(sid)
      local answer
      if s and not endIfOverdue(s) then answer = liveReply(s) else answer = endedReply(sid) end
      return done({'again', firstNonce, evicted, answer})
    end
  end
end

-- Refuse a user who is being erased, has ends to be written, or is banned. A longer note
-- is that of a user who has been removed: see user_erasure.lua.
do
  local note = call('GET', key('erasure:' .. user))
  if note and #note == 32 then return done({'erasing', note}) end
  if cutoffs > 0 and #readCutoff(user) > 0 then return done({'cutoff'}) end
  local ban = call('HGET', key('bans'), banKey)
  if ban and at < struct.unpack('>I8', ban) then return done({'banned', ban}) end
end

-- The session that is about to start, and its policy.
local s = {user = user, app = app, device = device, deviceID = deviceID, ip = address, token = tokenHash}
do
  local record = call('HMGET', key('user:' .. user), 'kind', 'name')
  s.kind = kind ~= '' and kind or record[1] or 'user'
  local name = userName ~= '' and userName or record[2] or ''
  s.rest = struct.pack('>Bc0', #name, name) .. rest
end
local policy = policyFor(policies, s.kind, s.app, s.device)
s.idle, s.life = policy.idle, policy.life

-- Which sessions go in any case: that of the same device, then those that are named.
local evictions, isEvicted = {}, {}

local function evict(other)
  if not other or isEvicted[other.id] then return end
  isEvicted[other.id] = true
  evictions[#evictions + 1] = other
end

-- mine loads a live session of the user; nil if it is none.
local function mine(sid)
  local other = loadSession(sid)
  if other and other.user == user and not endIfOverdue(other) then return other end
end

endDueOf(user)
do
  local same = s.deviceID ~= '' and call('HGET', key('d:' .. user), s.deviceID)
  if same then evict(mine(same)) end
  local isNamed, named = {}, {}
  for i = 1, #evictIDs, 16 do isNamed[string.sub(evictIDs, i, i + 15)] = true end
  for sid in pairs(isNamed) do named[#named + 1] = mine(sid) end
  table.sort(named, function(a, b) return isBefore(a.id, b.id) end)
  for _, other in ipairs(named) do evict(other) end
end
local inAnyCase = #evictions

-- Look at the user's sessions only if a limit may be reached, and one by one only if
-- they are few: all has them then. For a large user their orders say the rest.
local all
local count = call('ZCARD', key('u:' .. user))
if (policy.max > 0 and count >= policy.max) or (policy.maxDevice > 0 and count >= policy.maxDevice) then
  if not isLarge(user) then
    all = sessionsOf(user)
  elseif endDueOfLarge(user, most) then
    return done({'more', ''})
  end
end

-- countStaying returns how many of the user's sessions stay, of a device class or
-- (nil) of all.
local function countStaying(class)
  local n = 0
  if all then
    for _, other in ipairs(all) do
      if not class or other.device == class then n = n + 1 end
    end
  else
    n = call('ZCARD', class and ofClass('ul', class, user) or key('u:' .. user))
  end
  for _, other in ipairs(evictions) do
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

-- firstStaying returns the first n of them in an order.
local function firstStaying(n, class, order)
  local out = {}
  if all then
    for _, other in ipairs(all) do
      if not isEvicted[other.id] and (not class or other.device == class) then out[#out + 1] = other end
    end
    table.sort(out, orders[order])
    for i = #out, n + 1, -1 do out[i] = nil end
    return out
  end
  local name = order == 'idle' and key('us:' .. user) or key('u:' .. user)
  if class then name = ofClass(order == 'idle' and 'uc' or 'ul', class, user) end
  for _, sid in ipairs(rangeOf(name, order == 'newest', 0, n + #evictions - 1)) do
    if #out < n and not isEvicted[sid] then out[#out + 1] = loadSession(sid) end
  end
  return out
end

-- makeRoom evicts sessions until one more fits a limit. It returns the reply if the
-- login ends here: because it is refused, or because too many sessions have to end and
-- the caller is to send it again.
local function makeRoom(limit, class)
  local over = limit > 0 and countStaying(class) - limit + 1 or 0
  if over <= 0 then return nil end
  if policy.overflow == REJECT then
    local reply = {'limit', limit}
    for _, other in ipairs(firstStaying(mostNamed, class, 'newest')) do
      reply[#reply + 1] = {other.id, other.app, other.device, num(other.seen)}
    end
    return reply
  end
  if over > most and not kindIsKnown then return {'kind'} end
  local ids = {}
  for i, other in ipairs(firstStaying(math.min(over, most), class, policy.overflow == EVICT_IDLE and 'idle' or 'oldest')) do
    if over > most then endSession(other, at, 'replaced') else evict(other) end
    ids[i] = other.id
  end
  if over > most then return {'more', table.concat(ids)} end
end

local refusal = makeRoom(policy.maxDevice, s.device) or makeRoom(policy.max, nil)
if refusal then return done(refusal) end

if not kindIsKnown then return done({'kind'}) end

-- Nothing refuses the login any more. Ids made in one partition ascend, also within a
-- millisecond.
advance()
do
  local start = struct.pack('>I6', at) .. random
  local newest = call('HGET', part, 'newestid')
  if newest and not isBefore(newest, start) and string.sub(start, 1, 6) == string.sub(newest, 1, 6) then
    local high, low = struct.unpack('>I4I4', newest, 7)
    low = low + 1
    if low > 4294967295 then high, low = high + 1, 0 end
    start = string.sub(newest, 1, 6) .. struct.pack('>I4I4', high % 4294967296, low)
  end
  setState('newestid', start)
  s.id = start .. home
end
s.login = struct.unpack('>I6', s.id)
s.seen = s.login
s.blob = packSession(s)

-- End the sessions that make room; those that ended ahead are named between the ones
-- that go in any case and the others.
local replaced = {}
for i = 1, #evictions + 1 do
  if i == inAnyCase + 1 then replaced[#replaced + 1] = endedAhead end
  if evictions[i] then
    replaced[#replaced + 1] = evictions[i].id
    endSession(evictions[i], at, 'replaced')
  end
end
replaced = table.concat(replaced)

-- Store the new one, and what goes with it.
storeSession(s)
emit('log', SESSION_STARTED, user, {sid = s.id})
recordBeat({user})
if day ~= '' then mark(numberFor(user), s.kind, day) end
if retry ~= '' then
  call('SET', key('retry:' .. retry), struct.pack('>I8c32c32c16I4c0', at, retryRequest, nonce, s.id, #replaced, replaced), 'PX', retryKept)
end
local answer = liveReply(s)
answer[1], answer[6] = 'ok', replaced
return done(answer)

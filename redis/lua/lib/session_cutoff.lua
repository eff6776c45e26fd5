-- Cutoffs: ends of more sessions than one script may write. Needs presence.lua,
-- session.lua and session_visibility.lua. Gives cutOff, writeCutoff, drainCutoffs, tally
-- and drainAll; session_read.lua gives readCutoff, cutoffOf and endBy.
--
-- The problem: an end of all sessions of one user is atomic, a user may have any number
-- of sessions, and no script may take long.
--
-- The invariant: every session a cutoff concerns has ended for whoever asks, written or
-- not; and each session gets one end and one event.
--
-- 1. cutOff notes the end of all sessions it concerns, in constant time. From here on
--    loadSession finds none of them, and endedReply tells why and when they ended. A
--    user with a cutoff cannot start a session, so all their sessions are older.
-- 2. drainCutoffs writes the ends and their events step by step, in the order of logins.
-- 3. With the last of them the cutoff goes.
--
-- Steps 2 and 3 are done by the server that asked for the end; a list that needs exact
-- counts; a login or an erasure of the user; and every sweep.
--
-- | the server dies after | what the next one finds |
-- | --- | --- |
-- | 1 | all have ended, none is written. The next sweep, list or login writes them |
-- | a part of 2 | the cursor in the cutoff says which ones are written |
-- | 3 | nothing is left to do |

local function saveCutoff(user, list, cursor)
  local packed = {struct.pack('>Bc0', #cursor, cursor)}
  for _, c in ipairs(list) do
    packed[#packed + 1] = struct.pack('>I8Bc16Bc0Bc0Bc0I2c0Bc0', c.at, c.bare and 1 or 0, c.id, #c.device, c.device,
      #c.except, c.except, #c.cause, c.cause, #c.reason, c.reason, #c.actor, c.actor)
  end
  call('SET', key('cutoff:' .. user), table.concat(packed))
  cutoffsOf[user] = nil
end

-- countCutoffs changes how many users have a cutoff.
local function countCutoffs(by)
  cutoffs = cutoffs + by
  setState('cutoffs', num(cutoffs))
end

-- tally adds to what a request is told of its ends, and returns it: how many users are
-- left, how many sessions ended, and the ids of the first hundred.
local function tally(id, users, ids)
  local name = key('tally:' .. id)
  local before = call('GET', name)
  local left, n, named = 0, 0, ''
  if before then
    local place
    left, n, place = struct.unpack('>I4I8', before)
    named = string.sub(before, place)
  end
  left, n = left + users, n + #ids
  if #named < 1600 then named = string.sub(named .. table.concat(ids), 1, 1600) end
  call('SET', name, struct.pack('>I4I8', left, n) .. named, 'PX', 600000)
  return left, n, named
end

-- cutOff ends sessions of a user at this instant.
local function cutOff(user, c)
  local list, cursor = {}, ''
  if cutoffs > 0 then list, cursor = readCutoff(user) end
  if #list == 0 then
    call('ZADD', key('cutoffs'), num(at), user)
    countCutoffs(1)
  end
  c.at, c.id = at, request
  list[#list + 1] = c
  saveCutoff(user, list, '')
  tally(request, 1, {})
  if c.device == '' and c.except == '' and not c.bare then setGone(user, c.cause) end
end

-- writeCutoff writes up to budget ends of one user and returns how many sessions
-- it looked at.
local function writeCutoff(user, budget)
  local list, cursor = readCutoff(user)
  local mine, ended = key('u:' .. user), {}
  local rank = cursor ~= '' and rankBehind(mine, false, num(struct.unpack('>I6', cursor)), cursor) or 0
  local sids = call('ZRANGE', mine, rank, rank + budget - 1)
  for _, sid in ipairs(sids) do
    local s = readSession(sid)
    local c = s and cutoffOf(s)
    if c then
      local t, cause, reason, actor = endBy(s, c)
      endSession(s, t, cause, reason, actor, c.bare)
      ended[c.id] = ended[c.id] or {}
      table.insert(ended[c.id], sid)
    else
      cursor = sid
    end
  end
  for id, ids in pairs(ended) do tally(id, 0, ids) end
  if #sids == budget then
    saveCutoff(user, list, cursor)
    return #sids
  end
  call('DEL', key('cutoff:' .. user))
  call('ZREM', key('cutoffs'), user)
  cutoffsOf[user] = nil
  countCutoffs(-1)
  for _, c in ipairs(list) do tally(c.id, -1, {}) end
  local last = list[#list]
  local heardAt = tonumber(call('ZSCORE', key('seen'), user) or 0)
  if not last.bare and call('ZCARD', mine) == 0 and heardAt <= math.floor(last.at / 1000) then setGone(user, last.cause) end
  return #sids
end

-- drainCutoffs writes ends of the users who have waited longest, and returns how many
-- sessions it looked at.
local function drainCutoffs(budget)
  local n = 0
  while cutoffs > 0 and n < budget do
    local user = call('ZRANGE', key('cutoffs'), 0, 0)[1]
    if not user then break end
    n = n + 1 + writeCutoff(user, budget - n)
  end
  return n
end

-- drainAll writes the ends of cutoffs, has sessions follow users who turned invisible,
-- then ends sessions past their deadline. It returns how many sessions it looked at: the
-- budget, if there may be more.
local function drainAll(budget)
  local n = drainCutoffs(budget)
  if n < budget then n = n + drainVisibility(budget - n) end
  if n >= budget then return n end
  return n + endDueSessions(budget - n)
end

-- needs: env bytes invisible event presence session_large session_read session due session_due session_visibility session_cutoff
-- Ends sessions of a partition in one step, and sets bans. Past a number of sessions
-- it notes the ends as cutoffs: see session_cutoff.lua.
--
-- returns  {ids that ended, packed; how many users have ends that are to be written};
--          {'full'} and nothing is changed if a user has too many cutoffs
-- costs    O(log n) for each session ended at once, each id and each ban

local cause, reason, actor = ARGV[2], ARGV[3], ARGV[4]
local user = ARGV[5] -- whose sessions end, '' for nobody's
local device = ARGV[6] -- only those of this device class, '' for all
local except = ARGV[7] -- but this session, '' for none
local budget = tonumber(ARGV[8]) -- sessions of users to end at once
local idCount = tonumber(ARGV[9])
local list = argumentsFrom(10) -- so many ids; then bans: user, key, record, reason, actor, …

local bansFrom = 1 + idCount
local ids, affected, met, pending = {}, {}, {}, 0 -- affected: users who lost a session, each once, and why

-- Refuse before anything is changed.
local mostCutoffs = 16
if cutoffs > 0 then
  if user ~= '' and #readCutoff(user) >= mostCutoffs then return done({'full'}) end
  for i = bansFrom, #list, 5 do
    if #readCutoff(list[i]) >= mostCutoffs then return done({'full'}) end
  end
end

local function close(s, why, because, by)
  endSession(s, at, why, because, by)
  ids[#ids + 1] = s.id
  if not met[s.user] then
    met[s.user] = true
    affected[#affected + 1] = {s.user, why}
  end
end

-- closeAll ends the sessions of a user that a cutoff concerns: at once if they are
-- few, else it notes the cutoff.
local function closeAll(of, c)
  local n = call('ZCARD', key('u:' .. of))
  if n == 0 then return end
  if n > budget or (cutoffs > 0 and #readCutoff(of) > 0) then
    cutOff(of, c)
    pending = pending + 1
    return
  end
  budget = budget - n
  for _, s in ipairs(sessionsOf(of)) do
    if (c.device == '' or s.device == c.device) and s.id ~= c.except then close(s, c.cause, c.reason, c.actor) end
  end
end

-- tellDue tells what was due of a user before: events of one user come in the order in
-- which they happened.
local told = {}
local function tellDue(of)
  if told[of] then return end
  told[of] = true
  endDueOf(of)
  announceDue(of)
end

advance()
if user ~= '' then tellDue(user) end
for i = bansFrom, #list, 5 do tellDue(list[i]) end

-- Sessions by their ids.
for i = 1, idCount do
  local s = loadSession(list[i])
  if s then tellDue(s.user) end
  s = s and loadSession(list[i])
  if s and not endIfOverdue(s) then close(s, cause, reason, actor) end
end

-- Sessions of the user, and of those who are banned.
if user ~= '' then closeAll(user, {cause = cause, reason = reason, actor = actor, device = device, except = except}) end
for i = bansFrom, #list, 5 do
  closeAll(list[i], {cause = 'banned', reason = list[i + 3], actor = list[i + 4], device = '', except = ''})
end

-- The bans themselves. Their events come behind those of the ends.
for i = bansFrom, #list, 5 do
  call('HSET', key('bans'), list[i + 1], list[i + 2])
  call('ZADD', key('banends'), num(struct.unpack('>I8', list[i + 2])), list[i + 1])
  emit('log', USER_BANNED, list[i], {reason = list[i + 3], actor = list[i + 4]})
end
if bansFrom <= #list then call('HINCRBY', part, 'banchange', 1) end

-- Whoever has no session left is gone. For those who left before, the grace is over.
for _, a in ipairs(affected) do
  if not hasSession(a[1]) then setGone(a[1], a[2]) end
end
if user ~= '' and device == '' and except == '' and cause ~= 'logout' then endLogoutGrace(user) end
for i = bansFrom, #list, 5 do endLogoutGrace(list[i]) end
return done({table.concat(ids), pending})

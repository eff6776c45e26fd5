-- needs: env bytes event presence session_large session session_visibility session_cutoff
-- Ends sessions of a partition in one step, and sets bans. Ends past so many are
-- noted as cutoffs, see session_cutoff.lua.
--
-- ARGV[2]   cause   ARGV[3] reason   ARGV[4] actor
-- ARGV[5]   a user whose sessions end, '' for none
-- ARGV[6]   only those of this device class, '' for all
-- ARGV[7]   but this one, '' for none
-- ARGV[8]   how many sessions of users are ended at once at most
-- ARGV[9]   how many ids follow
-- ARGV[10…] ids, then bans: user, key, record, reason, actor of each
-- reply     {ids that ended, packed; how many users have ends that are to be
--           written}; {'full'} and nothing changed if a user has too many cutoffs
-- cost      O(log n) for each session ended at once, each id and each ban

local cause, reason, actor, user, device, except = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local budget, bans = tonumber(ARGV[8]), 10 + tonumber(ARGV[9])
local ids, affected, seen, pending = {}, {}, {}, 0

local mostCutoffs = 16
if cutoffs > 0 then
  if user ~= '' and #readCutoff(user) >= mostCutoffs then return done({'full'}) end
  for i = bans, #ARGV, 5 do
    if #readCutoff(ARGV[i]) >= mostCutoffs then return done({'full'}) end
  end
end

local function close(s, why, because, by)
  finish(s, at, why, because, by)
  ids[#ids + 1] = s.id
  if not seen[s.user] then
    seen[s.user] = true
    affected[#affected + 1] = {s.user, why}
  end
end

-- closeAll ends the sessions of a user: at once if they are few.
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

advance()
for i = 10, bans - 1 do
  local s = load(ARGV[i])
  if s then settleSessions(s.user) end
  s = s and load(ARGV[i])
  if s and not overdue(s) then close(s, cause, reason, actor) end
end
if user ~= '' then closeAll(user, {cause = cause, reason = reason, actor = actor, device = device, except = except}) end
for i = bans, #ARGV, 5 do
  closeAll(ARGV[i], {cause = 'banned', reason = ARGV[i + 3], actor = ARGV[i + 4], device = '', except = ''})
end
for i = bans, #ARGV, 5 do
  call('HSET', key('bans'), ARGV[i + 1], ARGV[i + 2])
  call('ZADD', key('banends'), num(struct.unpack('>I8', ARGV[i + 2])), ARGV[i + 1])
  emit('log', USER_BANNED, ARGV[i], {reason = ARGV[i + 3], actor = ARGV[i + 4]})
end
if bans <= #ARGV then call('HINCRBY', part, 'banchange', 1) end
for _, a in ipairs(affected) do
  if not anySession(a[1]) then hide(a[1], a[2]) end
end
return done({table.concat(ids), pending})

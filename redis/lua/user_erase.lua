-- needs: env bytes invisible event presence session_large session_read session due session_due session_visibility session_cutoff days_index days days_release kind user_erasure
-- Erases what a partition holds about one of its users, but for friends and the events
-- of the past: step 2 of an erasure, see user_erase.go.
--
-- returns  'ok'; 'marks' if marks of erased users are left; 'more' if sessions that
--          ended are left: then the user is still there, with their live sessions;
--          'cutoff' if ends have to be written first: then the rest of the user is;
--          'friends' if the user has made some meanwhile; 'past' if they are gone already
-- costs    O(log n) for each session, and days, of a bounded number

local user = ARGV[2]
local id = ARGV[3] -- of the erasure
local most = tonumber(ARGV[4]) -- sessions

advance()
local erasure = stillErasing(user, id)
if not erasure then return done('past') end

-- What has to go first.
if call('EXISTS', key('f:' .. user)) == 1 then return done('friends') end
if cutoffs > 0 and #readCutoff(user) > 0 then return done('cutoff') end
if call('ZCARD', key('u:' .. user)) > most then
  cutOff(user, {cause = 'erased', reason = '', actor = '', device = '', except = '', bare = true})
  return done('cutoff')
end

-- Sessions that ended, as many as one script forgets: those too whose end nobody has written.
sessionsOf(user)
local over = call('ZRANGE', key('e:' .. user), 0, most - 1)
for _, sid in ipairs(over) do
  local blob = call('GET', key('end:' .. sid))
  if blob then
    local _, _, _, _, _, _, place = struct.unpack('>I8I8I8Bc0I2c0Bc0', blob)
    call('DEL', key('end:' .. sid), key('tok:' .. unpackSession(sid, string.sub(blob, place)).token))
  end
end
if #over > 0 then call('ZREM', key('e:' .. user), unpack(over)) end
if #over == most then return done('more') end
call('DEL', key('e:' .. user))

-- Now the user, in this one step. An erasure that was cut short before has ended
-- nobody's session.
for _, s in ipairs(sessionsOf(user)) do endSession(s, at, 'erased', '', '', true) end
if announceDue(user) then emit('pres', USER_OFFLINE, '', {audience = invisible(user) and FOR_ADMIN or FOR_ALL}) end
call('SREM', key('announced'), user)
call('ZREM', key('loggedout'), user)
call('ZREM', key('seen'), user)
makeVisible(user)
call('ZREM', key('visibility'), user)
countKind(call('HGET', key('user:' .. user), 'kind'), -1)
call('DEL', key('user:' .. user), key('importing:' .. user), key('salt:' .. user))

-- Their number: what bears it follows step by step, see days.lua.
local n = call('HGET', key('num'), user)
if n then
  n = tonumber(n)
  call('HDEL', key('num'), user)
  call('HDEL', key('ids:' .. math.floor(n / 64)), n)
  call('ZREM', key('markless'), n)
  call('ZADD', key('wipe:days'), '-inf', n)
  clearFirstDays(n)
  -- They may count in cached figures, and in what was read back from the archive.
  if call('EXISTS', key('offloaded')) == 1 then
    invalidateAllFigures()
    call('SETBIT', key('hasarchived'), n, 0)
    noteMarkChange()
    noteArchiveChange()
  end
end

-- Of their ban the end and the beginning stay, without user, reason and actor.
local ban = call('HGET', key('bans'), erasure.ban)
if ban then
  call('HINCRBY', part, 'banchange', 1)
  call('HSET', key('bans'), erasure.ban, string.sub(ban, 1, 16) .. struct.pack('>BI2B', 0, 0, 0))
end

-- The note says from here on which events may name them. Later ones are those of
-- another user with the same id.
emit('log', USER_ERASED, '')
erasure.last, erasure.log, erasure.pres = lastEvent, 0, 0
saveErasure(erasure)
return done(releaseNumbers(100) and 'marks' or 'ok')

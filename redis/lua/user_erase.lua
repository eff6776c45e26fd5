-- needs: env bytes event presence session_large session session_visibility session_cutoff days_index days kind_users user_erasure
-- Erases what a partition holds about one of its users, but for friends and
-- the events of the past.
--
-- ARGV[2]  user   ARGV[3]  id of the erasure   ARGV[4]  how many sessions at most
-- reply    'ok'; 'marks' if marks of erased users are left; 'more' if sessions that
--          ended are left: then the user is still there, with their live sessions;
--          'cutoff' if ends have to be written first: then the rest of the user is;
--          'friends' if the user has made some meanwhile; 'past' if they are gone already
-- cost     O(log n) for each session, and days, of a bounded number

local user, most = ARGV[2], tonumber(ARGV[4])
advance()
local erasure = stillErasing(user, ARGV[3])
if not erasure then return done('past') end
if call('EXISTS', key('f:' .. user)) == 1 then return done('friends') end
if cutoffs > 0 and #readCutoff(user) > 0 then return done('cutoff') end
if call('ZCARD', key('u:' .. user)) > most then
  cutOff(user, {cause = 'erased', reason = '', actor = '', device = '', except = '', bare = true})
  return done('cutoff')
end
local over = call('ZRANGE', key('e:' .. user), 0, most - 1)
for _, sid in ipairs(over) do
  local blob = call('GET', key('end:' .. sid))
  if blob then
    local _, _, _, _, _, _, place = struct.unpack('>I8I8I8Bc0I2c0Bc0', blob)
    forgetToken(open(sid, string.sub(blob, place)))
    call('DEL', key('end:' .. sid))
  end
end
if #over > 0 then call('ZREM', key('e:' .. user), unpack(over)) end
if #over == most then return done('more') end
call('DEL', key('e:' .. user))
-- Only now: an erasure that is cut short before has ended nobody's session.
for _, s in ipairs(sessionsOf(user)) do finish(s, at, 'erased', '', '', true) end
if settleUser(user) then emit('pres', USER_OFFLINE, '', {audience = invisible(user) and FOR_TRUTH or FOR_ALL}) end
call('SREM', key('announced'), user)
call('ZREM', key('loggedout'), user)
call('ZREM', key('seen'), user)
makeVisible(user)
call('ZREM', key('visibility'), user)
countKind(call('HGET', key('user:' .. user), 'kind'), -1)
call('DEL', key('user:' .. user), key('importing:' .. user))
local n = call('HGET', key('num'), user)
if n then -- what bears the number follows, see days.lua
  n = tonumber(n)
  call('HDEL', key('num'), user)
  call('HDEL', key('ids:' .. math.floor(n / 64)), n)
  call('ZREM', key('markless'), n)
  call('ZADD', key('wipe:days'), '-inf', n)
  forgetFirsts(n)
  if call('EXISTS', key('offloaded')) == 1 then -- they may count in figures kept, and in what was read back
    reopenAll()
    call('SETBIT', key('hasarchived'), n, 0)
    countChange()
    touchRecalls()
  end
end
local ban = call('HGET', key('bans'), erasure.ban)
-- its end and its beginning stay, without user, reason and actor
if ban then
  call('HINCRBY', part, 'banchange', 1)
  call('HSET', key('bans'), erasure.ban, string.sub(ban, 1, 16) .. struct.pack('>BI2B', 0, 0, 0))
end
emit('log', USER_ERASED, '')
-- Only events up to here are theirs: whoever has the id from now on is another user.
erasure.last, erasure.log, erasure.pres = lastEvent, 0, 0
saveErasure(erasure)
return done(tidyNumbers(100) and 'marks' or 'ok')

-- needs: env bytes invisible event presence session_large session_read session due session_due
-- Lifts a ban.
--
-- returns  1, or 0 if there was none in force
-- costs    O(log n), and O(log n) for each session that is past its deadline

local user = ARGV[2] -- '' for no event
local banKey = ARGV[3]

local ban = call('HGET', key('bans'), banKey)
if not ban or at >= struct.unpack('>I8', ban) then return done(0) end
advance()
call('HDEL', key('bans'), banKey)
call('ZREM', key('banends'), banKey)
call('HINCRBY', part, 'banchange', 1)
if user ~= '' then
  -- What was due of the user comes before, in the order in which it happened.
  endDueOf(user)
  announceDue(user)
  emit('log', USER_UNBANNED, user)
end
return done(1)

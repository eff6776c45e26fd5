-- needs: env event
-- Lifts a ban.
--
-- ARGV[2]  user, '' to say nothing of it   ARGV[3]  ban key
-- reply    1, or 0 if there was none in force
-- cost     O(1)

local ban = call('HGET', key('bans'), ARGV[3])
if not ban or at >= struct.unpack('>I8', ban) then return done(0) end
advance()
call('HDEL', key('bans'), ARGV[3])
call('ZREM', key('banends'), ARGV[3])
call('HINCRBY', part, 'banchange', 1)
if ARGV[2] ~= '' then emit('log', USER_UNBANNED, ARGV[2]) end
return done(1)

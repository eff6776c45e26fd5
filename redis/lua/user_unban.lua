-- needs: env event
-- Lifts a ban.
--
-- returns  1, or 0 if there was none in force
-- costs    O(1)

local user = ARGV[2] -- '' for no event
local banKey = ARGV[3]

local ban = call('HGET', key('bans'), banKey)
if not ban or at >= struct.unpack('>I8', ban) then return done(0) end
advance()
call('HDEL', key('bans'), banKey)
call('ZREM', key('banends'), banKey)
call('HINCRBY', part, 'banchange', 1)
if user ~= '' then emit('log', USER_UNBANNED, user) end
return done(1)

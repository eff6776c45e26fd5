-- needs: env user_erasure
-- Notes that a user is being erased, before anything of theirs goes. If there is a
-- note already, it stays.
--
-- returns  the note
-- costs    O(log n)

local user = ARGV[2]
local banKey = ARGV[3]
local id = ARGV[4] -- of the erasure

advance()
if not erasureOf(user) then saveErasure({user = user, ban = banKey, id = id}) end
return done(call('GET', key('erasure:' .. user)))

-- needs: env user_erasure
-- Notes that a user is being erased, before anything of theirs goes. One who is being
-- erased already keeps the note that stands.
--
-- ARGV[2]  user   ARGV[3]  ban key   ARGV[4]  id of the erasure
-- reply    the note
-- cost     O(log n)

advance()
if not erasureOf(ARGV[2]) then saveErasure({user = ARGV[2], ban = ARGV[3], id = ARGV[4]}) end
return done(call('GET', key('erasure:' .. ARGV[2])))

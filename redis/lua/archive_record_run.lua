-- needs: env invisible event
-- Appends the event of a run of the archive that has ended.
--
-- returns  1
-- costs    O(1)

local completed = ARGV[2] == '1'
local reason = ARGV[3] -- what the run did, or why it failed
local runner = ARGV[4]

advance()
emit('log', completed and ARCHIVE_COMPLETED or ARCHIVE_FAILED, '', {reason = reason, actor = runner})
return done(1)

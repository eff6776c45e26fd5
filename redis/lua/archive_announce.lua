-- needs: env event
-- Notes that a run of the archive has ended.
--
-- ARGV[2]  1 if it completed, 0 if it failed
-- ARGV[3]  what it did, or why it failed   ARGV[4]  the runner
-- reply    1
-- cost     O(1)

advance()
emit('log', ARGV[2] == '1' and ARCHIVE_COMPLETED or ARCHIVE_FAILED, '', {reason = ARGV[3], actor = ARGV[4]})
return done(1)

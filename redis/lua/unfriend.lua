-- Removes one from the friends of a user.
--
-- ARGV[2]  user   ARGV[3]  friend
-- reply    1, or 0 if they were none
-- cost     O(log n)

local n = call('ZREM', key('f:' .. ARGV[2]), ARGV[3])
if n == 1 then
  advance()
  call('HINCRBY', part, 'edges', -1)
end
return done(n)

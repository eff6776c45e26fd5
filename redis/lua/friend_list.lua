-- needs: env friend_edge
-- A part of a user's list of friends, oldest friendship first.
--
-- ARGV[2]  user   ARGV[3] how many to pass over   ARGV[4] how many at most
-- reply    {stamp of the last change, the partition's time, how many friends,
--          friend, since, …}
-- cost     O(log n + how many)

local mine, from = key('f:' .. ARGV[2]), tonumber(ARGV[3])
local out = call('ZRANGE', mine, from, from + ARGV[4] - 1, 'WITHSCORES')
table.insert(out, 1, num(call('ZCARD', mine)))
table.insert(out, 1, num(at))
table.insert(out, 1, num(stampOf(ARGV[2], LAST)))
return done(out)

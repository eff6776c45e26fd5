-- needs: env friend_edge
-- Reads a part of a user's list of friends, the oldest friendship first.
--
-- returns  {stamp of the last change, the partition's time, how many friends there
--          are, friend, since, …}
-- costs    O(log n + how many)

local user = ARGV[2]
local skip, most = tonumber(ARGV[3]), tonumber(ARGV[4])

local mine = key('f:' .. user)
local out = call('ZRANGE', mine, skip, skip + most - 1, 'WITHSCORES')
table.insert(out, 1, num(call('ZCARD', mine)))
table.insert(out, 1, num(at))
table.insert(out, 1, num(stampOf(user, LAST)))
return done(out)

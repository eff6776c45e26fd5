-- needs: env friend_edge
-- Notes reverse edges of several users that are about to be written.
--
-- returns  a stamp
-- costs    O(log n) for each friend

local lists = argumentsFrom(2) -- user, how many friends follow, friends, …

local stamp, i = newStamp(), 1
while i <= #lists do
  local n = tonumber(lists[i + 1])
  noteLeftovers(lists[i], stamp, {unpack(lists, i + 2, i + 1 + n)})
  i = i + 2 + n
end
return done(stamp)

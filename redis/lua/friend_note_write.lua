-- needs: env friend_edge
-- Notes that reverse edges of users are about to be written, whatever stands.
--
-- ARGV[2…]  user, how many friends follow, friends, …
-- reply     a stamp
-- cost      O(log n) for each friend

local stamp, i = fresh(), 2
while i <= #ARGV do
  local n = tonumber(ARGV[i + 1])
  loosen(ARGV[i], stamp, {unpack(ARGV, i + 2, i + 1 + n)})
  i = i + 2 + n
end
return done(stamp)

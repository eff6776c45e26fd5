-- A sign of life of users.
--
-- ARGV[2…]  users, each once
-- reply     1
-- cost      O(log n) for each

local users = {}
for i = 2, #ARGV do users[i - 1] = ARGV[i] end
hear(users)
return done(1)

-- needs: env bytes event presence
-- A sign of life of users.
--
-- ARGV[2…]  users, each once
-- reply     1
-- cost      O(log n) for each

hear({unpack(ARGV, 2)})
return done(1)

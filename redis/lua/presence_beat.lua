-- needs: env bytes invisible event presence
-- Records a sign of life of users.
--
-- returns  1
-- costs    O(log n) for each

local users = argumentsFrom(2) -- each once

recordBeat(users)
return done(1)

-- needs: env bytes invisible event presence session_large session_read session due session_due session_visibility session_cutoff
-- Counts the live sessions of users.
--
-- returns  for each, in order: how many; nothing if more sessions are due than one
--          step ends, and the caller is to ask again
-- costs    O(1) for each, once due sessions have been ended

local public = ARGV[2] == '1' -- says that invisible users have none
local dueBudget = tonumber(ARGV[3]) -- due sessions to end
local users = argumentsFrom(4)

local out = {}
if drainAll(dueBudget) >= dueBudget then return done({}) end
for i, user in ipairs(users) do
  out[i] = public and invisible(user) and 0 or call('ZCARD', key('u:' .. user))
end
return done(out)

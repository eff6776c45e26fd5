-- needs: env bytes invisible event session_large session_read session session_visibility
-- Updates the sessions of a user who turned invisible, or visible again.
--
-- returns  1 if some are left, else 0
-- costs    O(log n) for each session

local user = ARGV[2]
local most = tonumber(ARGV[3]) -- sessions

if not call('ZSCORE', key('visibility'), user) then return done(0) end
return done(updateVisibility(user, most) and 1 or 0)

-- needs: env bytes event presence session_large session session_visibility session_cutoff
-- How many live sessions users have.
--
-- ARGV[2]   1 if invisible users have none
-- ARGV[3]   how many due sessions are ended at most
-- ARGV[4…]  users
-- reply     for each, in order: how many; nothing if more sessions are due than
--           one step ends, which is to be asked again then
-- cost      O(1) for each, once due sessions have been ended

local public, out, step = ARGV[2] == '1', {}, tonumber(ARGV[3])
if drainDue(step) >= step then return done({}) end
for i = 4, #ARGV do
  out[i - 3] = public and invisible(ARGV[i]) and 0 or call('ZCARD', key('u:' .. ARGV[i]))
end
return done(out)

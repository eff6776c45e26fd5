-- Takes marks back.
--
-- ARGV[2…]  user, kind or '' for the user's own, day, …
-- reply     {how many there were, user, kind, … whose first day it was, of a
--           kind or of '' all; if some of their days are in the archive}
-- cost      O(1) for each, and O(days) for each that was a user's first or last

local out = {0}
advance()
for i = 2, #ARGV, 3 do
  local user, kind = ARGV[i], ARGV[i + 1]
  if kind == '' then kind = call('HGET', key('user:' .. user), 'kind') or 'user' end
  local n = tonumber(call('HGET', key('num'), user) or -1)
  local firsts = n >= 0 and unmark(n, kind, tonumber(ARGV[i + 2]))
  if firsts then
    out[1] = out[1] + 1
    if call('GETBIT', key('away'), n) == 1 then
      for _, k in ipairs(firsts) do
        out[#out + 1] = user
        out[#out + 1] = k
      end
    end
    release(user, n)
  end
end
out[1] = num(out[1])
return done(out)

-- needs: env
-- Counts who is online, or who has a last-seen time.
--
-- ARGV[2]  window (s); -1 counts all who were seen in the last ARGV[3] s, also
--          those who are gone
-- ARGV[4]  1 if invisible users do not count
-- reply    the count
-- cost     O(log n)

local window, sec = tonumber(ARGV[2]), math.floor(at / 1000)

local function count(name)
  if window >= 0 then return call('ZCOUNT', name, since(window), sec) end
  local line = math.max(1, sec - tonumber(ARGV[3]))
  return call('ZCOUNT', name, line, '+inf') + call('ZCOUNT', name, '-inf', -line)
end

local n = count(key('seen'))
if ARGV[4] == '1' then n = n - count(key('hidden')) end
return done(n)

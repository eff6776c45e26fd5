-- needs: env
-- Counts who is online, or who has a last-seen time.
--
-- returns  the count
-- costs    O(log n)

local window = tonumber(ARGV[2]) -- s; -1 counts all who have a last-seen time
local retention = tonumber(ARGV[3]) -- of last-seen times, s
local public = ARGV[4] == '1' -- leaves invisible users out

local sec = math.floor(at / 1000)

-- countIn counts in seen or in hidden, where those who logged out have a negative
-- score.
local function countIn(name)
  if window >= 0 then return call('ZCOUNT', name, onlineSince(window), sec) end
  local line = math.max(1, sec - retention)
  return call('ZCOUNT', name, line, '+inf') + call('ZCOUNT', name, '-inf', -line)
end

local n = countIn(key('seen'))
if public then n = n - countIn(key('hidden')) end
return done(n)

-- Counts who is online, or who has a last-seen time.
--
-- ARGV[2]  window (s); -1 counts all who were seen in the last ARGV[3] s, also
--          those who are gone
-- ARGV[4]  1 if invisible users do not count
-- reply    the count
-- cost     O(log n), and O(1) for each invisible user of the partition

local window, sec = tonumber(ARGV[2]), math.floor(at / 1000)
if window < 0 then
  local line = math.max(1, sec - tonumber(ARGV[3]))
  local n = call('ZCOUNT', key('seen'), line, '+inf') + call('ZCOUNT', key('seen'), '-inf', -line)
  if ARGV[4] == '1' then
    for _, user in ipairs(call('SMEMBERS', key('hidden'))) do
      local last = math.abs(tonumber(call('ZSCORE', key('seen'), user) or 0))
      if last >= line then n = n - 1 end
    end
  end
  return done(n)
end
local line = since(window)
local n = call('ZCOUNT', key('seen'), line, sec)
if ARGV[4] == '1' then
  for _, user in ipairs(call('SMEMBERS', key('hidden'))) do
    local last = tonumber(call('ZSCORE', key('seen'), user) or 0)
    if last >= line and last <= sec then n = n - 1 end
  end
end
return done(n)

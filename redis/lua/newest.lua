-- A part of the users online, newest first, and how many there are.
--
-- ARGV[2]  window (s)       ARGV[3]  1 if invisible users are left out
-- ARGV[4]  the second to begin at, '' for the partition's present
-- ARGV[5]  the user of that second to begin behind, '' for none
-- ARGV[6]  how many
-- reply    {count, present second, user, second, …}, users of one second in
--          descending order of their bytes; fewer than asked for at the end
-- cost     O(log n + how many), and O(1) for each invisible user

local sec, line, public = math.floor(at / 1000), since(tonumber(ARGV[2])), ARGV[3] == '1'
local count, hidden = call('ZCOUNT', key('seen'), line, sec), {}
if public then
  for _, user in ipairs(call('SMEMBERS', key('hidden'))) do
    hidden[user] = true
    local last = tonumber(call('ZSCORE', key('seen'), user) or 0)
    if last >= line and last <= sec then count = count - 1 end
  end
end
local from, behind, want = ARGV[4] == '' and sec or tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])
local out, offset = {count, sec}, 0
while want > 0 do
  local ask = want + 16
  local chunk = call('ZREVRANGEBYSCORE', key('seen'), from, line, 'WITHSCORES', 'LIMIT', offset, ask)
  for i = 1, #chunk, 2 do
    local user, last = chunk[i], tonumber(chunk[i + 1])
    if want > 0 and not hidden[user] and (behind == '' or last < from or isBefore(user, behind)) then
      out[#out + 1] = user
      out[#out + 1] = last
      want = want - 1
    end
  end
  if #chunk < 2 * ask then break end
  offset = offset + ask
end
return done(out)

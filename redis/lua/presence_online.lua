-- needs: env bytes
-- Lists a part of the users online, newest first, and counts all.
--
-- returns  {count, present second, second and user to go on behind, '' and '' at the
--          end, user, second, …}: users of one second in descending order of their
--          bytes
-- costs    O(log n + how many)

local window = tonumber(ARGV[2]) -- s
local public = ARGV[3] == '1' -- leaves invisible users out
local from = ARGV[4] -- the second to begin at, '' for the partition's present
local behind = ARGV[5] -- the user of that second to begin behind, '' for none
local most = tonumber(ARGV[6]) -- users to look at

local seen, sec, line = key('seen'), math.floor(at / 1000), onlineSince(window)
local count = call('ZCOUNT', seen, line, sec)
if public then count = count - call('ZCOUNT', key('hidden'), line, sec) end
from = from == '' and sec or tonumber(from)

local rank
if behind == '' then
  rank = call('ZCOUNT', seen, '(' .. from, '+inf')
else
  rank = rankBehind(seen, true, from, behind)
end
local chunk = rangeOf(seen, true, rank, rank + most - 1, 'WITHSCORES')
local users = {}
for i = 1, #chunk, 2 do users[#users + 1] = chunk[i] end

local hidden = public and #users > 0 and call('ZMSCORE', key('hidden'), unpack(users)) or {}
local out, last = {count, sec, '', ''}, 0
for i = 1, #users do
  last = tonumber(chunk[2 * i])
  if last < line then break end
  if not hidden[i] then
    out[#out + 1] = users[i]
    out[#out + 1] = last
  end
end
if most > 0 and #users == most and last >= line then out[3], out[4] = last, users[most] end
return done(out)

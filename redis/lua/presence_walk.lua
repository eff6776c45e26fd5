-- needs: env bytes
-- Lists a part of the users whose last-seen time is kept, newest first, and counts
-- all. Those who logged out stand in seen with a negative score: two ranges are
-- merged.
--
-- returns  {count, present second, second and user to go on behind, '' and '' at the
--          end, user, second, …}: users of one second in descending order of their
--          bytes
-- costs    O(log n for each that is looked at)

local retention = tonumber(ARGV[2]) -- of last-seen times, s
local public = ARGV[3] == '1' -- leaves invisible users out
local from = ARGV[4] -- the second to begin at, '' for the partition's present
local behind = ARGV[5] -- the user of that second to begin behind, '' for none
local most = tonumber(ARGV[6]) -- users to look at

local seen, sec = key('seen'), math.floor(at / 1000)
local line = math.max(1, sec - retention)
from = from == '' and sec or tonumber(from)

local function countIn(name)
  return call('ZCOUNT', name, line, '+inf') + call('ZCOUNT', name, '-inf', -line)
end

-- notLoggedOut returns those who did not log out: user, second, …
local function notLoggedOut()
  local rank
  if behind == '' then
    rank = call('ZCOUNT', seen, '(' .. from, '+inf')
  else
    rank = rankBehind(seen, true, from, behind)
  end
  return rangeOf(seen, true, rank, rank + most - 1, 'WITHSCORES')
end

-- loggedOut returns those who did: user, second, … Their scores ascend while the
-- seconds descend, so the users of one second are read backwards, a second at a time.
local function loggedOut()
  local out, after = {}, behind
  local first = call('ZCOUNT', seen, '-inf', '(' .. -from)
  while #out < 2 * most do
    local next = call('ZRANGE', seen, first, first, 'WITHSCORES')
    local score = tonumber(next[2] or 0)
    if score >= 0 or -score < line then break end
    local last = first + call('ZCOUNT', seen, score, score) - 1
    local low, high = first, last
    if after ~= '' and -score == from then
      high = call('ZCARD', seen) - 1 - rankBehind(seen, true, score, after)
    end
    low = math.max(low, high + 1 - (most - #out / 2))
    local users = rangeOf(seen, false, low, high)
    for i = #users, 1, -1 do
      out[#out + 1] = users[i]
      out[#out + 1] = -score
    end
    first = last + 1
  end
  return out
end

local out = {countIn(seen), sec, '', ''}
if public then out[1] = out[1] - countIn(key('hidden')) end

-- Merge the two: the newer second first, in one second the greater name.
local a, b, users, seconds = {}, {}, {}, {}
if most > 0 then a, b = notLoggedOut(), loggedOut() end
local i, j = 1, 1
while #users < most do
  local x, y = tonumber(a[i + 1] or 0), tonumber(b[j + 1] or 0)
  if math.max(x, y) < line then break end
  local n = #users + 1
  if x > y or (x == y and isBefore(b[j], a[i])) then
    users[n], seconds[n] = a[i], x
    i = i + 2
  else
    users[n], seconds[n] = b[j], y
    j = j + 2
  end
end

local hidden = public and #users > 0 and call('ZMSCORE', key('hidden'), unpack(users)) or {}
for n = 1, #users do
  if not hidden[n] then
    out[#out + 1] = users[n]
    out[#out + 1] = seconds[n]
  end
end
if most > 0 and #users == most then out[3], out[4] = seconds[most], users[most] end
return done(out)

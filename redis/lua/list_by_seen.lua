-- needs: env bytes due session_hidden
-- Reads a part of the sessions by last sign of life, newest first, and counts all,
-- once those that are due have been ended.
--
-- returns  {1 if more are due, count, present, id and last sign of life, 16 and 6
--          bytes, packed, such a place to go on behind or '' at the end}
-- costs    O(timeouts · log n + how many): few of each if there are many timeouts

local from = ARGV[2] -- the instant to begin at, ms, '' for the partition's present
local behind = ARGV[3] -- the session of that instant to begin behind, '' for none
local most = tonumber(ARGV[4]) -- sessions to look at
local public = ARGV[5] == '1' -- leaves sessions of invisible users out
local dueBudget = tonumber(ARGV[6]) -- due sessions to end

if dueBudget > 0 and mustDrain() then
  -- needs: invisible event presence session_large session_read session session_due session_visibility session_cutoff
  if drainAll(dueBudget) >= dueBudget then return done({1, 0, 0, '', ''}) end
end
local count = call('HLEN', key('sessions'))
if public then count = count - call('ZCARD', key('invisible:login')) end
if from == '' then from = num(at) end

-- The sessions of one timeout stand in one order. Read the first of each.
local idles = call('SMEMBERS', key('idles'))
most = math.min(most, math.max(16, math.floor(500 / math.max(1, #idles))))
local streams = {}
for _, idle in ipairs(idles) do
  local order, rank = key('idle:' .. idle), nil
  if behind == '' then
    rank = call('ZCOUNT', order, '(' .. from, '+inf')
  else
    rank = rankBehind(order, true, from, behind)
  end
  local chunk = rangeOf(order, true, rank, rank + most - 1, 'WITHSCORES')
  if #chunk > 0 then streams[#streams + 1] = {chunk = chunk, i = 1, seen = tonumber(chunk[2])} end
end

-- Merge them: take the newest of their heads again and again.
local sids, seen = {}, {}
while #sids < most and #streams > 0 do
  local best = 1
  for j = 2, #streams do
    local a, b = streams[j], streams[best]
    if a.seen > b.seen or (a.seen == b.seen and isBefore(b.chunk[b.i], a.chunk[a.i])) then best = j end
  end
  local s = streams[best]
  sids[#sids + 1], seen[#seen + 1] = s.chunk[s.i], s.seen
  s.i = s.i + 2
  s.seen = tonumber(s.chunk[s.i + 1] or nil)
  if not s.seen then table.remove(streams, best) end
end

local out, place = {}, ''
local hidden = public and areHidden(sids) or {}
for i, sid in ipairs(sids) do
  local packed = sid .. struct.pack('>I6', seen[i])
  if not hidden[i] then out[#out + 1] = packed end
  if i == most then place = packed end
end
return done({0, count, num(at), table.concat(out), place})

-- needs: env bytes event presence session_large session session_visibility session_cutoff
-- A part of the sessions by last sign of life, newest first, and how many there
-- are, once those that are due have been ended.
--
-- ARGV[2]  the instant to begin at, ms, '' for the partition's present
-- ARGV[3]  the session of that instant to begin behind, '' for none
-- ARGV[4]  how many are looked at at most
-- ARGV[5]  1 if sessions of invisible users are left out
-- ARGV[6]  how many due sessions are ended at most
-- reply    {more due, count, present, id and last sign of life, 16 and 6 bytes,
--          packed, such a place to go on behind or '' at the end}
-- cost     O(timeouts · log n + how many): few of each if there are many timeouts

local budget = tonumber(ARGV[6])
if budget > 0 and drainDue(budget) >= budget then return done({1, 0, 0, '', ''}) end
local count, public = call('ZCARD', key('login')), ARGV[5] == '1'
if public then count = count - call('ZCARD', key('invisible:login')) end
local from, behind = ARGV[2], ARGV[3]
if from == '' then from = num(at) end

-- Sessions of one timeout stand in one order; the first of all are merged.
local idles = call('SMEMBERS', key('idles'))
local most = math.min(tonumber(ARGV[4]), math.max(16, math.floor(500 / math.max(1, #idles))))
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
local veiled = public and isVeiled(sids) or {}
for i, sid in ipairs(sids) do
  local packed = sid .. struct.pack('>I6', seen[i])
  if not veiled[i] then out[#out + 1] = packed end
  if i == most then place = packed end
end
return done({0, count, num(at), table.concat(out), place})

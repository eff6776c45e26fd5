-- needs: env bytes invisible event presence session_large session_read session due session_due session_visibility session_cutoff session_hidden
-- Finds sessions that meet several indexed conditions, once those that are due have
-- been ended.
--
-- returns  {1 if more are due, candidates in the range, the last one looked at or '',
--          id and last sign of life, 16 and 6 bytes, packed, how many were looked at}:
--          fewer than asked for at the end
-- costs    O(candidates looked at · conditions)

local low, high = tonumber(ARGV[2]), tonumber(ARGV[3]) -- login in [low, high), ms
local down = ARGV[4] == '1' -- newest first
local most = tonumber(ARGV[5]) -- candidates to look at
local public = ARGV[6] == '1' -- leaves sessions of invisible users out
local dueBudget = tonumber(ARGV[7]) -- due sessions to end; 0 leaves them
local behind = ARGV[8] -- id to begin behind, '' for none
local wantSeen = ARGV[9] == '1' -- asks for the last sign of life; else it is 0
local user = ARGV[10] -- whose sessions, '' for anybody's
local conditions = argumentsFrom(11) -- keys within the partition

if dueBudget > 0 and drainAll(dueBudget) >= dueBudget then return done({1, 0, '', '', 0}) end

-- The candidates are the sessions of the user, or those of the rarest condition.
local orders = {}
for i, condition in ipairs(conditions) do orders[i] = key(condition) end
local base
if user ~= '' then
  base = key('u:' .. user)
else
  table.sort(orders, function(a, b) return call('ZCARD', a) < call('ZCARD', b) end)
  base = table.remove(orders, 1)
end

-- candidates returns those behind the one that an earlier step looked at last, and
-- how many there are in the range.
local function candidates()
  local first, n = nil, call('ZCOUNT', base, low, '(' .. num(high))
  if down then
    first = call('ZCOUNT', base, num(high), '+inf')
  else
    first = call('ZCOUNT', base, '-inf', '(' .. num(low))
  end
  local rank = first
  if behind ~= '' then rank = math.max(first, rankBehind(base, down, num(struct.unpack('>I6', behind)), behind)) end
  return rangeOf(base, down, rank, math.min(first + n, rank + most) - 1), n
end

-- Keep those that stand in the orders of all other conditions.
local sids, total = candidates()
local out, scores, hidden = {}, {}, public and areHidden(sids) or {}
if #sids > 0 then
  for c, order in ipairs(orders) do scores[c] = call('ZMSCORE', order, unpack(sids)) end
end
for i, sid in ipairs(sids) do
  local all = not hidden[i]
  for c = 1, #orders do all = all and scores[c][i] end
  if all then
    local s = wantSeen and loadSession(sid)
    out[#out + 1] = sid .. struct.pack('>I6', s and s.seen or 0)
  end
end
return done({0, total, sids[#sids] or '', table.concat(out), #sids})

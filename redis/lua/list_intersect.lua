-- needs: env bytes invisible event presence session_large session_read session due session_due session_visibility session_cutoff session_hidden session_order
-- Finds sessions that meet several indexed conditions, once those that are due have
-- been ended.
--
-- returns  {1 if more are due, candidates in the range, the last one looked at or '',
--          id and last sign of life, 16 and 6 bytes, packed, how many were looked at, 1
--          if there are no more behind them}
-- costs    O(candidates looked at · conditions)

local low, high = ARGV[2], ARGV[3] -- login in [low, high), ms
local down = ARGV[4] == '1' -- newest first
local most = tonumber(ARGV[5]) -- candidates to look at
local public = ARGV[6] == '1' -- leaves sessions of invisible users out
local dueBudget = tonumber(ARGV[7]) -- due sessions to end; 0 leaves them
local behind = ARGV[8] -- id to begin behind, '' for none
local wantSeen = ARGV[9] == '1' -- asks for the last sign of life; else it is 0
local user = ARGV[10] -- whose sessions, '' for anybody's
local conditions = argumentsFrom(11) -- orders, by:field:value, or login alone

if dueBudget > 0 and drainAll(dueBudget) >= dueBudget then return done({1, 0, '', '', 0, 0}) end

-- The candidates are the sessions of the user, or those of the rarest condition.
local orders, bases = {}, nil
if user ~= '' then bases = {key('u:' .. user)} end
if not bases and #conditions == 1 then
  bases = ordersOf(conditions[1])
else
  for i, condition in ipairs(conditions) do orders[i] = key(condition) end
  if not bases then
    table.sort(orders, function(a, b) return call('ZCARD', a) < call('ZCARD', b) end)
    bases = {table.remove(orders, 1)}
  end
end

-- Keep those that stand in the orders of all other conditions.
local total, sids, place = readOrders(bases, low, high, down, behind, '', most)
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
return done({0, total, sids[#sids] or '', table.concat(out), #sids, place == '' and 1 or 0})

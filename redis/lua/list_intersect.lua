-- needs: env bytes event presence session_large session session_visibility session_cutoff
-- The sessions that meet several indexed conditions, once those that are due
-- have been ended.
--
-- ARGV[2]  login at or after, ms      ARGV[3]  login before, ms
-- ARGV[4]  1 for newest first
-- ARGV[5]  how many candidates are looked at at most
-- ARGV[6]  1 if sessions of invisible users are left out
-- ARGV[7]  how many due sessions are ended at most; 0 leaves them
-- ARGV[8]  id to begin behind, '' for none
-- ARGV[9]  1 if the last sign of life is asked for; else it is 0
-- ARGV[10] the user whose sessions they are, '' for any
-- ARGV[11…] keys of the conditions within the partition
-- reply    {more due, candidates in the range, last one looked at or '',
--          id and last sign of life, 16 and 6 bytes, packed, how many were looked
--          at}: fewer than asked for at the end
-- cost     O(candidates looked at · conditions)

local budget = tonumber(ARGV[7])
if budget > 0 and drainDue(budget) >= budget then return done({1, 0, '', '', 0}) end
local low, high, down, most = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', tonumber(ARGV[5])
local behind, seen, orders = ARGV[8], ARGV[9] == '1', {}
for i = 11, #ARGV do orders[#orders + 1] = key(ARGV[i]) end
-- The candidates are the sessions of the user, or those of the rarest condition.
local base
if ARGV[10] ~= '' then
  base = key('u:' .. ARGV[10])
else
  table.sort(orders, function(a, b) return call('ZCARD', a) < call('ZCARD', b) end)
  base = table.remove(orders, 1)
end

-- candidates returns those behind the one that an earlier step looked at last.
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

local sids, total = candidates()
local out, held, veiled = {}, {}, ARGV[6] == '1' and isVeiled(sids) or {}
if #sids > 0 then
  for c, order in ipairs(orders) do held[c] = call('ZMSCORE', order, unpack(sids)) end
end
for i, sid in ipairs(sids) do
  local all = not veiled[i]
  for c = 1, #orders do all = all and held[c][i] end
  if all then
    local s = seen and load(sid)
    out[#out + 1] = sid .. struct.pack('>I6', s and s.seen or 0)
  end
end
return done({0, total, sids[#sids] or '', table.concat(out), #sids})

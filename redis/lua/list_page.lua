-- needs: env bytes event presence session_large session session_visibility session_cutoff
-- A part of the sessions in login order, and how many there are, once those
-- that are due have been ended.
--
-- ARGV[2]  key of the order within the partition: login, or by:field:value
-- ARGV[3]  login at or after, ms      ARGV[4]  login before, ms
-- ARGV[5]  1 for newest first
-- ARGV[6]  id to begin behind, '' for none
-- ARGV[7]  login to begin at, ms, '' for the end of the range
-- ARGV[8]  how many are looked at
-- ARGV[9]  1 if sessions of invisible users are left out
-- ARGV[10] how many due sessions are ended at most; 0 leaves them
-- reply    {more due, count, ids packed, id to go on behind or '' at the end}
-- cost     O(log n + how many)

local budget = tonumber(ARGV[10])
if budget > 0 and drainDue(budget) >= budget then return done({1, 0, '', ''}) end
local order, low, high, down = key(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1'
local behind, from, most, public = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9] == '1'

-- first is the rank at which the range begins, rank that at which this part does.
local count, first = call('ZCOUNT', order, low, '(' .. ARGV[4]), nil
if down then
  first = call('ZCOUNT', order, high, '+inf')
else
  first = call('ZCOUNT', order, '-inf', '(' .. ARGV[3])
end
local rank = first
if behind ~= '' then
  rank = rankBehind(order, down, num(struct.unpack('>I6', behind)), behind)
elseif from and down then
  rank = call('ZCOUNT', order, '(' .. ARGV[7], '+inf')
elseif from then
  rank = call('ZCOUNT', order, '-inf', '(' .. ARGV[7])
end
rank = math.max(first, rank)
local last = math.min(first + count, rank + most) - 1
local sids = rangeOf(order, down, rank, last)
local place = last + 1 < first + count and sids[#sids] or ''
if public then
  count = count - call('ZCOUNT', key('invisible:' .. ARGV[2]), low, '(' .. ARGV[4])
  sids = unveiled(sids)
end
return done({0, count, table.concat(sids), place})

-- needs: glance
-- Reads a part of the sessions in login order, and counts all, once those that are
-- due have been ended.
--
-- returns  {1 if more are due, count, ids packed, id to go on behind or '' at the end}
-- costs    O(log n + how many)

local orderName = ARGV[2] -- login for all, or by:field:value
local low, high = ARGV[3], ARGV[4] -- login in [low, high), ms; '' and '' for all
local down = ARGV[5] == '1' -- newest first
local behind = ARGV[6] -- id to begin behind, '' for none
local from = ARGV[7] -- login to begin at, ms, '' for the end of the range
local most = tonumber(ARGV[8]) -- sessions to look at
local public = ARGV[9] == '1' -- leaves sessions of invisible users out
local dueBudget = tonumber(ARGV[10]) -- due sessions to end; 0 leaves them

-- needs: list_page_plain
-- Any other part.
-- needs: env bytes due session_hidden session_order

if dueBudget > 0 and mustDrain() then
  -- needs: invisible event presence session_large session_read session session_due session_visibility session_cutoff
  if drainAll(dueBudget) >= dueBudget then return done({1, 0, '', ''}) end
end

local count, sids, place = readOrders(ordersOf(orderName), low, high, down, behind, from, most)
if public then
  local hidden = key('invisible:' .. orderName)
  count = count - (low == '' and call('ZCARD', hidden) or call('ZCOUNT', hidden, low, '(' .. high))
  sids = visibleOnly(sids)
end
return done({0, count, table.concat(sids), place})

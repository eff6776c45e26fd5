-- Orders of sessions by login, and by id within a millisecond. Needs bytes.lua. Gives ordersOf
-- and readOrders.
--
-- Each session stands in the order of its kind, and in none of all sessions, which would be
-- another 120 bytes of each: the order of all is merged of those of the kinds.

-- ordersOf returns the orders that one is merged of: login for all sessions, by:field:value.
local function ordersOf(name)
  if name ~= 'login' then return {key(name)} end
  local orders = call('SMEMBERS', key('kinds'))
  for i, kind in ipairs(orders) do orders[i] = key('by:kind:' .. kind) end
  return orders
end

-- mergeHeads takes the next session of some lists of ids again and again, and returns them,
-- most at most.
local function mergeHeads(lists, down, most)
  local out, heads = {}, {}
  for i = 1, #lists do heads[i] = 1 end
  while #out < most do
    local best, first = nil, nil
    for i = 1, #lists do
      local sid = lists[i][heads[i]]
      if sid and (not best or isBefore(sid, first) ~= down) then best, first = i, sid end
    end
    if not best then break end
    out[#out + 1], heads[best] = first, heads[best] + 1
  end
  return out
end

-- readOrders reads the sessions of some orders whose login is in [low, high), or all if these are
-- '', from the end if down: those behind the id behind, or from the login from on, or all, if these are ''. It reads
-- most at most, and fewer if there are many orders. It returns how many there are in the range,
-- the ids, and the id to go on behind, '' at the end.
local function readOrders(orders, low, high, down, behind, from, most)
  if #orders > 1 then most = math.min(most, math.max(16, math.floor(500 / #orders))) end
  local count, lists, left = 0, {}, 0
  for i, order in ipairs(orders) do
    -- first is the rank at which the range begins, rank the one at which this part does.
    local n, first, rank = nil, 0, nil
    if low == '' then
      n = call('ZCARD', order)
    else
      n = call('ZCOUNT', order, low, '(' .. high)
      first = down and call('ZCOUNT', order, high, '+inf') or call('ZCOUNT', order, '-inf', '(' .. low)
    end
    if behind ~= '' then
      rank = rankBehind(order, down, num(struct.unpack('>I6', behind)), behind)
    elseif from ~= '' and down then
      rank = call('ZCOUNT', order, '(' .. from, '+inf')
    elseif from ~= '' then
      rank = call('ZCOUNT', order, '-inf', '(' .. from)
    end
    rank = math.max(first, rank or 0)
    lists[i] = rangeOf(order, down, rank, math.min(first + n, rank + most) - 1)
    count, left = count + n, left + math.max(0, first + n - rank)
  end
  local sids = #orders == 1 and lists[1] or mergeHeads(lists, down, most)
  return count, sids, #sids < left and sids[#sids] or ''
end

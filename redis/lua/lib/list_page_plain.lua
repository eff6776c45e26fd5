-- The first part of a list from its end or its beginning, in one piece. Needs glance.lua and the
-- arguments of list_page.lua. Gives no function: it answers, or leaves it to what follows.
--
-- It answers where nothing is due, the sessions stand in one order, and none is hidden from the
-- viewer. A test compares both ways.
repeat
  if not isPlain or low ~= '' or high ~= '' or behind ~= '' or from ~= '' then break end

  -- What is due, and what is hidden.
  if public and call('EXISTS', root .. ':invisible:login') == 1 then break end
  if dueBudget > 0 then
    if call('EXISTS', root .. ':visibility', root .. ':ends') > 0 then
      if call('EXISTS', root .. ':visibility') == 1 or call('ZCOUNT', root .. ':ends', '-inf', at) > 0 then break end
    end
    local due = false
    for _, idle in ipairs(call('SMEMBERS', root .. ':idles')) do
      local order, upTo = ':idle:', at
      if idle == 'postponed' or idle == 'other' then order = ':deadline:' else upTo = at - idle end
      if call('ZCOUNT', root .. order .. idle, '-inf', upTo) > 0 then due = true end
    end
    if due then break end
  end

  local order = root .. ':' .. orderName
  if orderName == 'login' then
    local kinds = call('SMEMBERS', root .. ':kinds')
    if #kinds ~= 1 then break end
    order = root .. ':by:kind:' .. kinds[1]
  end
  local count, sids = call('ZCARD', order), {}
  if most > 0 and down then
    sids = call('ZRANGE', order, 0, most - 1, 'REV')
  elseif most > 0 then
    sids = call('ZRANGE', order, 0, most - 1)
  end
  return {0, count, table.concat(sids), #sids < count and sids[#sids] or ''}
until true

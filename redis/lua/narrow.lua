-- The sessions that meet several indexed conditions, once those that are due
-- have been ended.
--
-- ARGV[2]  login at or after, ms      ARGV[3]  login before, ms
-- ARGV[4]  1 for newest first
-- ARGV[5]  how many candidates are looked at at most, 0 for all
-- ARGV[6]  1 if sessions of invisible users are left out
-- ARGV[7]  how many due sessions are ended at most
-- ARGV[8]  how many users follow, -1 for any user at all
-- ARGV[9…] users, then the keys of the conditions within the partition
-- reply    {more due, candidates left out, last candidate looked at or '',
--          id and last sign of life, 16 and 6 bytes, packed}
-- cost     O(candidates of the rarest condition · conditions)

local budget = tonumber(ARGV[7])
if drainDue(budget) >= budget then return done({1, 0, '', ''}) end
local low, high, down, most = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', tonumber(ARGV[5])
local users, orders = tonumber(ARGV[8]), {}
for i = 9 + math.max(0, users), #ARGV do orders[#orders + 1] = key(ARGV[i]) end
local hidden = {}
if ARGV[6] == '1' then
  for _, user in ipairs(call('SMEMBERS', key('hidden'))) do
    for _, sid in ipairs(call('ZRANGE', key('u:' .. user), 0, -1)) do hidden[sid] = true end
  end
end

local out, looked, last = {}, 0, ''

-- keep takes those of some sessions that meet every condition.
local function keep(sids, conditions)
  local held = {}
  for i, order in ipairs(conditions) do held[i] = call('ZMSCORE', order, unpack(sids)) end
  for i, sid in ipairs(sids) do
    local all = not hidden[sid]
    for c = 1, #conditions do all = all and held[c][i] end
    local login = struct.unpack('>I6', sid)
    if all and login >= low and login < high then
      local s = load(sid)
      if s then out[#out + 1] = sid .. struct.pack('>I6', s.seen) end
    end
  end
  looked, last = looked + #sids, sids[#sids]
end

if users >= 0 then
  for i = 9, 8 + users do
    local sids = call('ZRANGE', key('u:' .. ARGV[i]), 0, -1)
    if #sids > 0 then keep(sids, orders) end
  end
  return done({0, 0, '', table.concat(out)})
end

table.sort(orders, function(a, b) return call('ZCARD', a) < call('ZCARD', b) end)
local base, rest, offset = orders[1], {unpack(orders, 2)}, 0
local total = call('ZCOUNT', base, low, '(' .. ARGV[3])
while most == 0 or looked < most do
  local ask, chunk = most == 0 and 500 or math.min(500, most - looked), nil
  if down then
    chunk = call('ZREVRANGEBYSCORE', base, '(' .. ARGV[3], low, 'LIMIT', offset, ask)
  else
    chunk = call('ZRANGEBYSCORE', base, low, '(' .. ARGV[3], 'LIMIT', offset, ask)
  end
  if #chunk == 0 then break end
  keep(chunk, rest)
  offset = offset + #chunk
end
return done({0, math.max(0, total - looked), last, table.concat(out)})

-- A part of the sessions in login order, and how many there are, once those
-- that are due have been ended.
--
-- ARGV[2]  key of the order within the partition: login, or by:field:value
-- ARGV[3]  login at or after, ms      ARGV[4]  login before, ms
-- ARGV[5]  1 for newest first
-- ARGV[6]  id to begin behind, '' for none
-- ARGV[7]  login to begin at, ms, '' for the end of the range
-- ARGV[8]  how many
-- ARGV[9]  1 if sessions of invisible users are left out
-- ARGV[10] how many due sessions are ended at most; 0 leaves them
-- reply    {more due, count, ids packed, hidden ids packed}; fewer ids than
--          asked for at the end
-- cost     O(log n + how many), and O(sessions) of invisible users

local budget = tonumber(ARGV[10])
if budget > 0 and drainDue(budget) >= budget then return done({1, 0, '', ''}) end
local order, low, high, down = key(ARGV[2]), ARGV[3], '(' .. ARGV[4], ARGV[5] == '1'
local count, hidden, skip = call('ZCOUNT', order, low, high), {}, {}
if ARGV[9] == '1' then
  for _, user in ipairs(call('SMEMBERS', key('hidden'))) do
    for _, sid in ipairs(call('ZRANGE', key('u:' .. user), 0, -1)) do
      local login = tonumber(call('ZSCORE', order, sid) or -1)
      if login >= tonumber(low) and login < tonumber(ARGV[4]) then
        hidden[#hidden + 1] = sid
        skip[sid] = true
      end
    end
  end
end

local behind, want, offset, out = ARGV[6], tonumber(ARGV[8]), 0, {}
local from = ARGV[7]
if behind ~= '' then from = num(struct.unpack('>I6', behind)) end
if from ~= '' then
  if down then
    if tonumber(from) < tonumber(ARGV[4]) then high = from end
  elseif tonumber(from) > tonumber(low) then
    low = from
  end
end
while want > 0 do
  local ask, chunk = want + 4, nil
  if down then
    chunk = call('ZREVRANGEBYSCORE', order, high, low, 'LIMIT', offset, ask)
  else
    chunk = call('ZRANGEBYSCORE', order, low, high, 'LIMIT', offset, ask)
  end
  for _, sid in ipairs(chunk) do
    if want > 0 and not skip[sid] and (behind == '' or (down and isBefore(sid, behind)) or (not down and isBefore(behind, sid))) then
      out[#out + 1] = sid
      want = want - 1
    end
  end
  if #chunk < ask then break end
  offset = offset + ask
end
return done({0, count - #hidden, table.concat(out), table.concat(hidden)})

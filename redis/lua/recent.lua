-- A part of the sessions by last sign of life, newest first, and how many there
-- are, once those that are due have been ended.
--
-- ARGV[2]  the instant to begin at, ms, '' for the partition's present
-- ARGV[3]  the session of that instant to begin behind, '' for none
-- ARGV[4]  how many
-- ARGV[5]  1 if sessions of invisible users are left out
-- ARGV[6]  how many due sessions are ended at most
-- reply    {more due, count, present, id and last sign of life, 16 and 6 bytes,
--          packed}; fewer than asked for at the end
-- cost     O(timeouts · (log n + how many))

local budget = tonumber(ARGV[6])
if budget > 0 and drainDue(budget) >= budget then return done({1, 0, 0, ''}) end
local count, hidden = call('ZCARD', key('login')), {}
if ARGV[5] == '1' then
  for _, user in ipairs(call('SMEMBERS', key('hidden'))) do
    for _, sid in ipairs(call('ZRANGE', key('u:' .. user), 0, -1)) do
      hidden[sid] = true
      count = count - 1
    end
  end
end
local from, behind, want = ARGV[2], ARGV[3], tonumber(ARGV[4])
if from == '' then from = num(at) end

-- take returns the first sessions of one timeout.
local function take(order, into)
  local left, offset = want, 0
  while left > 0 do
    local ask = left + 4
    local chunk = call('ZREVRANGEBYSCORE', order, from, '-inf', 'WITHSCORES', 'LIMIT', offset, ask)
    for i = 1, #chunk, 2 do
      local sid, seen = chunk[i], tonumber(chunk[i + 1])
      if left > 0 and not hidden[sid] and (behind == '' or seen < tonumber(from) or isBefore(sid, behind)) then
        into[#into + 1] = {sid, seen}
        left = left - 1
      end
    end
    if #chunk < 2 * ask then return end
    offset = offset + ask
  end
end

local found = {}
for _, idle in ipairs(call('SMEMBERS', key('idles'))) do take(key('idle:' .. idle), found) end
table.sort(found, function(a, b)
  if a[2] ~= b[2] then return a[2] > b[2] end
  return isBefore(b[1], a[1])
end)
local out = {}
for i = 1, math.min(want, #found) do out[i] = found[i][1] .. struct.pack('>I6', found[i][2]) end
return done({0, count, num(at), table.concat(out)})

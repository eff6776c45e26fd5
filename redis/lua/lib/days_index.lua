-- Days and months of which there is something, in order. Gives enterField,
-- leaveField and someFields.
--
-- An index is a hash from kind:day to a value: days, offloaded, or dirtymonths,
-- which has months for days. With each kind of an index goes an order of its days,
-- such as days:user, so that a script can look at some of them at a time.

-- fieldOf splits the field of a day or a month into kind and number.
local function fieldOf(field)
  local kind, day = string.match(field, '^(.*):(%-?%d+)$')
  return kind, tonumber(day)
end

local function enterField(index, field)
  local kind, day = fieldOf(field)
  call('ZADD', index .. ':' .. kind, day, day)
end

local function leaveField(index, field)
  local kind, day = fieldOf(field)
  call('ZREM', index .. ':' .. kind, day)
end

-- someFields returns about as many fields as asked for, of a kind or ('') of all
-- kinds, from one day up to another: as {kind, day}, and the day to go on at, nil
-- at the end. The answer has all fields of each day before that one.
local function someFields(index, kind, from, to, most)
  local kinds = {kind}
  if kind == '' then kinds = call('SMEMBERS', key('firsts')) end
  local each, found, on = math.max(1, math.floor(most / math.max(1, #kinds))), {}, nil
  for i, k in ipairs(kinds) do
    found[i] = k == '' and {} or call('ZRANGEBYSCORE', index .. ':' .. k, from, to, 'LIMIT', 0, each + 1)
    local next = tonumber(found[i][each + 1] or nil)
    if next and (not on or next < on) then on = next end
  end
  local out = {}
  for i, k in ipairs(kinds) do
    for _, day in ipairs(found[i]) do
      day = tonumber(day)
      if not on or day < on then out[#out + 1] = {k, day} end
    end
  end
  table.sort(out, function(a, b) return a[2] < b[2] end)
  return out, on
end

-- Texts in the order of their bytes, and places in orders. Gives isBefore,
-- rankBehind and rangeOf.

-- isBefore compares two texts by their bytes: < goes by the locale of the server.
local function isBefore(a, b)
  for i = 1, math.min(#a, #b), 8 do
    if string.sub(a, i, i + 7) ~= string.sub(b, i, i + 7) then
      for j = i, i + 7 do
        local x, y = string.byte(a, j) or -1, string.byte(b, j) or -1
        if x ~= y then return x < y end
      end
    end
  end
  return #a < #b
end

-- rankBehind returns the rank of the first member of an order behind a place,
-- counted from the end if down. The place is a score and a member, which need not
-- be there.
local function rankBehind(order, down, score, member)
  local low, high
  if down then
    low = call('ZCOUNT', order, '(' .. score, '+inf')
  else
    low = call('ZCOUNT', order, '-inf', '(' .. score)
  end
  high = low + call('ZCOUNT', order, score, score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local there
    if down then
      there = call('ZRANGE', order, middle, middle, 'REV')[1]
    else
      there = call('ZRANGE', order, middle, middle)[1]
    end
    if (down and isBefore(there, member)) or (not down and isBefore(member, there)) then high = middle else low = middle + 1 end
  end
  return low
end

-- rangeOf returns members of an order by rank, from the end if down.
local function rangeOf(order, down, first, last, ...)
  if last < first then return {} end
  if down then return call('ZRANGE', order, first, last, 'REV', ...) end
  return call('ZRANGE', order, first, last, ...)
end

-- Texts by their bytes: < goes by the locale of the server.

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

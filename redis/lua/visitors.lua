-- Estimates the visitors of a name: of all hours named, and of groups of them.
--
-- ARGV[2]   name
-- ARGV[3…]  for each group how many hours it has, then the hours, s
-- reply     {all, first group, …}
-- cost      O(hours); a sketch has 12 KiB at most

local sketches, out = {}, {0}
local i = 3
while i <= #ARGV do
  local group = {}
  for j = i + 1, i + ARGV[i] do
    local sketch = key('visits:' .. ARGV[j] .. ':' .. ARGV[2])
    if call('EXISTS', sketch) == 1 then
      group[#group + 1] = sketch
      sketches[#sketches + 1] = sketch
    end
  end
  out[#out + 1] = #group == 0 and 0 or call('PFCOUNT', unpack(group))
  i = i + ARGV[i] + 1
end
if #sketches > 0 then
  -- more keys than one call takes are merged in two steps, within the script
  if #sketches <= 4000 then
    out[1] = call('PFCOUNT', unpack(sketches))
  else
    local merged = key('visits:merged')
    for j = 1, #sketches, 4000 do call('PFMERGE', merged, unpack(sketches, j, math.min(#sketches, j + 3999))) end
    out[1] = call('PFCOUNT', merged)
    call('DEL', merged)
  end
end
return done(out)

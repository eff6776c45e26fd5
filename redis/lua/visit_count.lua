-- needs: env
-- Estimates the visitors of a name: of groups of hours, and of all hours so far.
--
-- ARGV[2]   name
-- ARGV[3]   a name for the sketch in which the hours of all calls are merged
-- ARGV[4…]  for each group how many hours it has, then the hours, s
-- reply     {all so far, first group, …}
-- cost      O(hours); a sketch has 12 KiB at most

local merged, single, out, i = key('visits:merged:' .. ARGV[3]), {}, {0}, 4
while i <= #ARGV do
  local group = {}
  for j = i + 1, i + ARGV[i] do
    local sketch = key('visits:' .. ARGV[j] .. ':' .. ARGV[2])
    if call('EXISTS', sketch) == 1 then group[#group + 1] = sketch end
  end
  if #group == 0 then
    out[#out + 1] = 0
  elseif #group == 1 then
    out[#out + 1] = call('PFCOUNT', group[1])
    single[#single + 1] = group[1]
  else -- merged once, for the group and for all
    local sum = merged .. ':group'
    call('PFMERGE', sum, unpack(group))
    out[#out + 1] = call('PFCOUNT', sum)
    call('PFMERGE', merged, sum)
    call('DEL', sum)
  end
  i = i + ARGV[i] + 1
end
if #single > 0 then call('PFMERGE', merged, unpack(single)) end
out[1] = call('PFCOUNT', merged)
call('PEXPIRE', merged, 60000)
return done(out)

-- needs: env
-- Estimates the visitors of a name: of groups of hours, and of all hours so far.
--
-- returns  {all so far, first group, …}
-- costs    O(hours); a sketch has 12 KiB at most

local name = ARGV[2]
local mergedName = ARGV[3] -- of the sketch in which the hours of all calls are merged
local groups = argumentsFrom(4) -- for each how many hours it has, then the hours, s

local merged, single, out, i = key('visits:merged:' .. mergedName), {}, {0}, 1
while i <= #groups do
  local sketches = {}
  for j = i + 1, i + groups[i] do
    local sketch = key('visits:' .. groups[j] .. ':' .. name)
    if call('EXISTS', sketch) == 1 then sketches[#sketches + 1] = sketch end
  end
  if #sketches == 0 then
    out[#out + 1] = 0
  elseif #sketches == 1 then
    out[#out + 1] = call('PFCOUNT', sketches[1])
    single[#single + 1] = sketches[1]
  else -- merged once, for the group and for all
    local sum = merged .. ':group'
    call('PFMERGE', sum, unpack(sketches))
    out[#out + 1] = call('PFCOUNT', sum)
    call('PFMERGE', merged, sum)
    call('DEL', sum)
  end
  i = i + groups[i] + 1
end
if #single > 0 then call('PFMERGE', merged, unpack(single)) end
out[1] = call('PFCOUNT', merged)
call('PEXPIRE', merged, 60000)
return done(out)

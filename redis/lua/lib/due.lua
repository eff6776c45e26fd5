-- Whether something is due in the partition: a look that costs little, as most often
-- nothing is. Needs env.lua. Gives anyDue and mustDrain.

-- anyDue reports whether any session of the partition is past its deadline.
local function anyDue()
  if call('ZCOUNT', key('ends'), '-inf', at) > 0 then return true end
  local line = effectiveNow(at)
  for _, idle in ipairs(call('SMEMBERS', key('idles'))) do
    local name, upTo = key('idle:' .. idle), line
    if idle == 'postponed' or idle == 'other' then name = key('deadline:' .. idle) else upTo = line - idle end
    if call('ZCOUNT', name, '-inf', upTo) > 0 then return true end
  end
  return false
end

-- mustDrain reports whether a list, before it answers, has to write what drainAll of
-- session_cutoff.lua writes.
local function mustDrain()
  return cutoffs > 0 or call('EXISTS', key('visibility')) == 1 or anyDue()
end

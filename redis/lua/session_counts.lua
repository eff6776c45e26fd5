-- needs: env due
-- Counts the live sessions that have some values of a field, once those that are due have
-- been ended.
--
-- returns  {how many live sessions there are, 1 if there are more values, value, count…};
--          nothing if more sessions are due than one step ends, and the caller is to ask
--          again
-- costs    O(1) for each value

local field = ARGV[2] -- kind, app or device
local most = tonumber(ARGV[3]) -- values to name, those with the most sessions; 0 for none
local public = ARGV[4] == '1' -- leaves sessions of invisible users out
local dueBudget = tonumber(ARGV[5]) -- due sessions to end; 0 leaves them
local values = argumentsFrom(6) -- to be counted, if none are to be named

if dueBudget > 0 and mustDrain() then
  -- needs: bytes invisible event presence session_large session_read session session_due session_visibility session_cutoff
  if drainAll(dueBudget) >= dueBudget then return done({}) end
end
local named, more = key('counts:' .. field), 0
if most > 0 then
  values = call('ZRANGE', named, 0, most - 1, 'REV')
  if call('ZCARD', named) > most then more = 1 end
end

-- visible takes the sessions off that the viewer does not see in an order.
local function visible(n, order)
  if public then n = n - call('ZCARD', key('invisible:' .. order)) end
  return n
end

local out = {visible(call('HLEN', key('sessions')), 'login'), more}
for _, value in ipairs(values) do
  out[#out + 1] = value
  local order = 'by:' .. field .. ':' .. value
  out[#out + 1] = visible(call('ZCARD', key(order)), order)
end
return done(out)

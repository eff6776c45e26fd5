-- needs: env user_erasure
-- Removes an erased user and their sessions from some events. The events keep their
-- places. With the last of them the note of the erasure goes.
--
-- returns  1 if there is more to do, 0 if the erasure is over
-- costs    O(log n) for each

local user = ARGV[2]
local id = ARGV[3] -- of the erasure
local budget = tonumber(ARGV[4]) -- events to look at

local x = erasureOf(user)
if not x or x.id ~= id then return done(0) end

-- redact removes the user from one event: a bare copy takes its place, in redacted.
local function redact(stream, place, blob)
  local kind, audience, t, of, behind = struct.unpack('>BBI8Bc0', blob)
  if of ~= user then return end
  local _, cause = struct.unpack('>Bc0Bc0', blob, behind)
  call('XDEL', key(stream), place .. '-0')
  local bare = struct.pack('>BBI8BBBc0I2B', kind, audience, t, 0, 0, #cause, cause, 0, 0)
  call('ZADD', key('redacted'), place, place .. ':' .. bare)
end

advance()
for _, stream in ipairs({'log', 'pres'}) do
  if budget > 0 and x[stream] <= x.last then
    local entries, place = call('XRANGE', key(stream), num(x[stream]), num(x.last), 'COUNT', budget), nil
    for _, entry in ipairs(entries) do
      place = string.match(entry[1], '^%d+')
      redact(stream, place, entry[2][2])
    end
    x[stream] = #entries == budget and tonumber(place) + 1 or x.last + 1
    budget = budget - #entries
  end
end
if x.log <= x.last or x.pres <= x.last then
  saveErasure(x)
  return done(1)
end
forgetErasure(user)
return done(0)

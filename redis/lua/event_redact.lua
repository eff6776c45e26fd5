-- needs: env
-- Takes the user and the session out of events; their places stay.
--
-- ARGV[2]   stream
-- ARGV[3…]  place, the event without its user, …
-- reply     1
-- cost      O(log n) for each

local stream = key(ARGV[2])
for i = 3, #ARGV, 2 do
  if call('XDEL', stream, ARGV[i] .. '-0') == 1 then
    call('ZADD', key('redacted'), ARGV[i], ARGV[i] .. ':' .. ARGV[i + 1])
  end
end
return done(1)

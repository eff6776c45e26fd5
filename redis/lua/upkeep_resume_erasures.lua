-- needs: env user_erasure
-- Takes up erasures that nobody has gone on with for a while.
--
-- returns  {user, note, …}
-- costs    O(log n) for each

local most = tonumber(ARGV[2])

advance()
local order, taken = key('erasing'), {}
local users = call('ZRANGEBYSCORE', order, '-inf', at, 'LIMIT', 0, most)
-- Also those that would wait for very long: they were noted while a clock was ahead.
if #users == 0 then users = call('ZRANGEBYSCORE', order, '(' .. num(at + erasurePause), '+inf', 'LIMIT', 0, most) end
for _, user in ipairs(users) do
  taken[#taken + 1] = user
  taken[#taken + 1] = call('GET', key('erasure:' .. user))
  keepErasing(user)
end
return done(taken)

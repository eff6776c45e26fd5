-- needs: env user_erasure
-- Takes up erasures that nobody has gone on with for a while; also those that would wait
-- for very long, because a clock was ahead.
--
-- ARGV[2]  how many at most
-- reply    {user, note, …}
-- cost     O(log n) for each

advance()
local order, taken = key('erasing'), {}
local users = call('ZRANGEBYSCORE', order, '-inf', at, 'LIMIT', 0, ARGV[2])
if #users == 0 then users = call('ZRANGEBYSCORE', order, '(' .. num(at + erasurePause), '+inf', 'LIMIT', 0, ARGV[2]) end
for _, user in ipairs(users) do
  taken[#taken + 1] = user
  taken[#taken + 1] = call('GET', key('erasure:' .. user))
  goesOn(user)
end
return done(taken)

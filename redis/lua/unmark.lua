-- Takes marks back.
--
-- ARGV[2…]  user, kind or '' for the user's own, day, …
-- reply     how many there were
-- cost      O(1) for each, and O(days) for each that was a user's last

local n = 0
advance()
for i = 2, #ARGV, 3 do
  local user, kind = ARGV[i], ARGV[i + 1]
  if kind == '' then kind = call('HGET', key('user:' .. user), 'kind') or 'user' end
  local number = call('HGET', key('num'), user)
  if number and unmark(tonumber(number), kind .. ':' .. ARGV[i + 2]) then
    n = n + 1
    release(user, tonumber(number))
  end
end
return done(n)

-- Makes kinds of users known: all of them, or none.
--
-- KEYS[1]  rc:kinds
-- ARGV[1]  how many there may be   ARGV[2…] kinds, each named once
-- reply    1, or 0 and nothing changed if they would be too many
-- cost     O(1) for each

local new = {}
for i = 2, #ARGV do
  if redis.call('SISMEMBER', KEYS[1], ARGV[i]) == 0 then new[#new + 1] = ARGV[i] end
end
if redis.call('SCARD', KEYS[1]) + #new > tonumber(ARGV[1]) then return 0 end
for _, kind in ipairs(new) do redis.call('SADD', KEYS[1], kind) end
return 1

-- Makes kinds of users known: all of them, or none.
--
-- returns  1, or 0 and nothing is changed if there would be too many
-- costs    O(1) for each

local known = KEYS[1] -- rc:kinds
local limit = tonumber(ARGV[1])
local kinds = {} -- each once
for i = 2, #ARGV do kinds[i - 1] = ARGV[i] end

local new = {}
for _, kind in ipairs(kinds) do
  if redis.call('SISMEMBER', known, kind) == 0 then new[#new + 1] = kind end
end
if redis.call('SCARD', known) + #new > limit then return 0 end
for _, kind in ipairs(new) do redis.call('SADD', known, kind) end
return 1

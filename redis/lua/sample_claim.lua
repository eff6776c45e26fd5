-- Gives a server the right to take the sample of a minute, for a short time.
--
-- returns  'taken' if the minute has been sampled, 'busy' if another server is at it, else
--          the minute whose sample is under way, 0 for none
-- costs    O(1)

local samples = KEYS[1] -- rc:samples
local minute, holder = tonumber(ARGV[1]), ARGV[2]
local now, length = tonumber(ARGV[3]), tonumber(ARGV[4]) -- ms

-- A sample that is more than a day ahead was taken while a clock was wrong, and a lease
-- that ends later than one may was too. Neither counts.
local held = redis.call('HMGET', samples, 'minute', 'holder', 'until')
local underWay, till = tonumber(held[1] or 0), tonumber(held[3] or 0)
if minute <= underWay and underWay - minute < 1440 then return 'taken' end
if held[2] and held[2] ~= holder and now < till and till <= now + length then return 'busy' end
redis.call('HSET', samples, 'holder', holder, 'until', string.format('%.0f', now + length))
return held[1] or '0'

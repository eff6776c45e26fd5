-- Appends an entry to the audit trail, if it follows the newest one.
--
-- returns  {} if it stands there now; else number and hash of the newest entry, 0 and ''
--          for none
-- costs    O(1)

local trail = KEYS[1] -- rc:audit
local seq, before = ARGV[1], ARGV[2] -- of the entry; the hash that it follows
local record, hash = ARGV[3], ARGV[4]
local request = ARGV[5] -- names this request, whenever it comes

local newest = redis.call('XREVRANGE', trail, '+', '-', 'COUNT', 16)
-- The answer was lost, and the caller asks again.
for _, entry in ipairs(newest) do
  if entry[2][6] == request then return {} end
end

local last, lastHash = 0, ''
if newest[1] then
  last, lastHash = tonumber(string.match(newest[1][1], '^%d+')), newest[1][2][4]
end
if tonumber(seq) ~= last + 1 or before ~= lastHash then return {string.format('%.0f', last), lastHash} end
redis.call('XADD', trail, seq .. '-0', 'e', record, 'h', hash, 'q', request)
return {}

-- needs: env
-- Forgets hours of a name of visits, a part of the partition's at a time, and the name
-- once all have been looked at.
--
-- returns  the place to go on at, -1 at the end
-- costs    O(log n + hours looked at)

local name = ARGV[2]
local from, most = tonumber(ARGV[3]), tonumber(ARGV[4]) -- among the partition's hours

local entries, kept = call('ZRANGE', key('hours'), from, from + most - 1), 0
for _, entry in ipairs(entries) do
  if string.match(entry, '^%-?%d+:(.*)$') == name then
    call('DEL', key('visits:' .. entry))
    call('ZREM', key('hours'), entry)
  else
    kept = kept + 1
  end
end
if #entries == most then return done(from + kept) end
call('HDEL', key('names'), name)
call('HDEL', key('newesthours'), name)
return done(-1)

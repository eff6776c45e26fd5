-- needs: env bytes invisible event session_large session_read session due session_due
-- Lists some of a user's sessions.
--
-- returns  {instant and id to go on behind, '' and '' at the end; sessions as in
--          session_lookup.lua, …}
-- costs    O(log n) for each

local user = ARGV[2]
local which = ARGV[3] -- u for those that live, by login; e for those that ended, by their end
local fromTime, fromID = ARGV[4], ARGV[5] -- to begin behind; '' and '' for the start
local most = tonumber(ARGV[6]) -- sessions to look at

local order, rank = key(which .. ':' .. user), 0
if fromID ~= '' then rank = rankBehind(order, false, fromTime, fromID) end
local some = call('ZRANGE', order, rank, rank + most - 1, 'WITHSCORES')
local out = {'', ''}
for i = 1, #some, 2 do
  local sid = some[i]
  if which == 'u' then
    local s = loadSession(sid)
    if s and not endIfOverdue(s) then out[#out + 1] = liveReply(s) end
  else
    out[#out + 1] = endedReply(sid)
  end
end
if #some == 2 * most then out[1], out[2] = some[#some], some[#some - 1] end
return done(out)

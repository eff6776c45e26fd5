-- needs: env bytes event session_large session
-- Some of a user's sessions.
--
-- ARGV[2]  user   ARGV[3] u for those that live, by login; e for those that ended,
--          by their end
-- ARGV[4]  instant and id to begin behind, ARGV[5], '' and '' for none
-- ARGV[6]  how many are looked at
-- reply    {instant and id to go on behind, '' and '' at the end; sessions as in
--          session_lookup.lua, …}
-- cost     O(log n) for each

local order, rank, most = key(ARGV[3] .. ':' .. ARGV[2]), 0, tonumber(ARGV[6])
if ARGV[5] ~= '' then rank = rankBehind(order, false, ARGV[4], ARGV[5]) end
local some = call('ZRANGE', order, rank, rank + most - 1, 'WITHSCORES')
local out = {'', ''}
for i = 1, #some, 2 do
  local sid = some[i]
  if ARGV[3] == 'u' then
    local s = load(sid)
    if s and not overdue(s) then out[#out + 1] = live(s) end
  else
    out[#out + 1] = ended(sid)
  end
end
if #some == 2 * most then out[1], out[2] = some[#some], some[#some - 1] end
return done(out)

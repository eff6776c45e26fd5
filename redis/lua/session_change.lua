-- needs: env event session_large session
-- Replaces the record of a live session, if it is still the one expected.
--
-- ARGV[2]  id   ARGV[3] the record expected   ARGV[4] the new one
-- reply    {'live', id, record, seen, expires}, {'ended', id, end}, {'unknown'},
--          or {'again'} if the record is another one
-- cost     O(log n)

local sid = ARGV[2]
local s = load(sid)
if not s or overdue(s) then return done(ended(sid)) end
if s.blob ~= ARGV[3] then return done({'again'}) end
advance()
local after = open(sid, ARGV[4])
after.seen = s.seen
call('SET', key('s:' .. sid), after.blob)
if after.app ~= s.app then
  index(s, 'ZREM')
  unveil(s)
  index(after, 'ZADD')
  if invisible(after.user) then veil(after) end
end
if after.token ~= s.token then
  forgetToken(s)
  call('SET', key('tok:' .. after.token), sid)
end
return done(live(after))

-- needs: env invisible event session_large session_read session due session_due
-- Replaces the record of a live session, if it is still the one expected.
--
-- returns  {'live', id, record, seen, expires}, {'ended', id, end} or {'unknown'}; or
--          {'again'} if the record is another one
-- costs    O(log n)

local sid = ARGV[2]
local expected, replacement = ARGV[3], ARGV[4] -- records

local s = loadSession(sid)
if not s or endIfOverdue(s) then return done(endedReply(sid)) end
if s.blob ~= expected then return done({'again'}) end
advance()
local after = unpackSession(sid, replacement)
after.seen = s.seen
call('HSET', key('sessions'), sid, after.blob)

-- Indexes follow the app and the token: nothing else of a session changes.
if after.app ~= s.app then
  indexSession(s, 'ZREM')
  showSession(s)
  indexSession(after, 'ZADD')
  if invisible(after.user) then hideSession(after) end
end
if after.token ~= s.token then
  call('HDEL', tokenPlace(s.token))
  local bucket, field = tokenPlace(after.token)
  call('HSET', bucket, field, sid)
end
return done(liveReply(after))

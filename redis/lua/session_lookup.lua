-- needs: glance
-- Finds sessions, live or ended. It is no sign of life, and changes nothing.
--
-- returns  for each, in order: {'live', id, record, seen, expires}; {'overdue', id,
--          record, seen, expires, end, cause} for one that is past its deadline and
--          not ended yet; {'ended', id, end}; or {'unknown'}
-- costs    O(1) for each

local public = ARGV[2] == '1' -- finds no sessions of invisible users
local onlyLive = ARGV[3] == '1'
local refs = argumentsFrom(4) -- T and the first half of a token's hash, or I and an id

-- needs: session_lookup_plain
-- Any other look.
-- needs: env invisible session_read

local function lookup(ref)
  local sid = findSession(ref)
  if not sid then return {'unknown'} end
  local s = loadSession(sid)
  if not s then
    local answer = onlyLive and {'unknown'} or endedReply(sid)
    if public and answer[3] then
      local _, _, _, _, _, _, place = struct.unpack('>I8I8I8Bc0I2c0Bc0', answer[3])
      if invisible(unpackSession(sid, string.sub(answer[3], place)).user) then return {'unknown'} end
    end
    return answer
  end
  if public and invisible(s.user) then return {'unknown'} end
  local t, cause = deadline(s)
  if at < t then return liveReply(s) end
  if onlyLive or at >= t + endedKept then return {'unknown'} end
  local answer = liveReply(s)
  answer[1], answer[6], answer[7] = 'overdue', num(t), cause
  return answer
end

local out = {}
for i, ref in ipairs(refs) do out[i] = lookup(ref) end
return done(out)

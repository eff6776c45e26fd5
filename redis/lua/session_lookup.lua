-- needs: env event session_large session
-- Finds sessions, live or ended. It is no sign of life.
--
-- ARGV[2]   1 if sessions of invisible users are not to be found
-- ARGV[3]   1 if only live ones are asked for
-- ARGV[4…]  references: T and the first half of a token's hash, or I and an id
-- reply     for each, in order: {'live', id, record, seen, expires},
--           {'overdue', id, record, seen, expires, end, cause} for one that is past
--           its deadline and not swept, {'ended', id, end} or {'unknown'}
-- cost      O(1) for each

local public, onlyLive = ARGV[2] == '1', ARGV[3] == '1'

local function lookup(ref)
  local sid = find(ref)
  if not sid then return {'unknown'} end
  local s = load(sid)
  if not s then
    local answer = onlyLive and {'unknown'} or ended(sid)
    if public and answer[3] then
      local _, _, _, _, _, _, place = struct.unpack('>I8I8I8Bc0I2c0Bc0', answer[3])
      if invisible(open(sid, string.sub(answer[3], place)).user) then return {'unknown'} end
    end
    return answer
  end
  if public and invisible(s.user) then return {'unknown'} end
  local t, cause = deadline(s)
  if at < t then return live(s) end
  if onlyLive or at >= t + keep then return {'unknown'} end
  local answer = live(s)
  answer[1], answer[6], answer[7] = 'overdue', num(t), cause
  return answer
end

local out = {}
for i = 4, #ARGV do out[#out + 1] = lookup(ARGV[i]) end
return done(out)

-- needs: env bytes event presence session_large session policy
-- Moves the last sign of life of sessions, by the policy that applies now.
--
-- ARGV[2]   policies, packed; the last one matches everything
-- ARGV[3…]  references: T and the first half of a token's hash, or I and an id
-- reply     for each, in order: {'live', id, record, seen, expires},
--           {'ended', id, end} or {'unknown'}
-- cost      O(log n) for each

-- follow gives a session the timeouts of the policy that applies now.
local function follow(s, policy)
  if policy.idle == s.idle and policy.life == s.life and not s.postponed then return end
  displace(s)
  s.idle, s.life, s.postponed, s.odd = policy.idle, policy.life, nil, nil
  s.blob = pack(s)
  call('SET', key('s:' .. s.id), s.blob)
end

local function touch(ref, heard)
  local sid = find(ref)
  if not sid then return {'unknown'} end
  local s = load(sid)
  if not s or overdue(s) then return ended(sid) end
  follow(s, policyFor(ARGV[2], s.kind, s.app, s.device))
  s.seen = math.max(s.seen, at)
  place(s)
  if overdue(s) then return ended(sid) end -- the policy's lifetime has passed
  if not heard[s.user] then
    heard[s.user] = true
    heard[#heard + 1] = s.user
  end
  return live(s)
end

local out, heard = {}, {}
for i = 3, #ARGV do out[#out + 1] = touch(ARGV[i], heard) end
advance()
if #heard > 0 then hear(heard) end
return done(out)

-- needs: env bytes invisible event presence session_large session_read session due session_due policy
-- Moves the last sign of life of sessions, by the policy that applies now.
--
-- returns  for each, in order: {'live', id, record, seen, expires}, {'ended', id,
--          end} or {'unknown'}
-- costs    O(log n) for each

local policies = ARGV[2] -- packed; the last one matches everything
local refs = argumentsFrom(3) -- T and the first half of a token's hash, or I and an id

-- applyPolicy gives a session the timeouts of the policy that applies now.
local function applyPolicy(s, policy)
  if policy.idle == s.idle and policy.life == s.life and not s.postponed then return end
  unplace(s)
  s.idle, s.life, s.postponed, s.otherIdle = policy.idle, policy.life, nil, nil
  s.blob = packSession(s)
  call('HSET', key('sessions'), s.id, s.blob)
end

local users, isListed = {}, {} -- of the sessions that are touched, each once

local function touch(ref)
  local sid = findSession(ref)
  if not sid then return {'unknown'} end
  local s = loadSession(sid)
  if not s or endIfOverdue(s) then return endedReply(sid) end
  applyPolicy(s, policyFor(policies, s.kind, s.app, s.device))
  s.seen = math.max(s.seen, at)
  placeSession(s)
  if endIfOverdue(s) then return endedReply(sid) end -- the policy's lifetime has passed
  if not isListed[s.user] then
    isListed[s.user] = true
    users[#users + 1] = s.user
  end
  return liveReply(s)
end

local out = {}
for i, ref in ipairs(refs) do out[i] = touch(ref) end
advance()
if #users > 0 then recordBeat(users) end
return done(out)

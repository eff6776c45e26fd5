-- Ends sessions of a partition in one step, and sets bans.
--
-- ARGV[2]   cause   ARGV[3] reason   ARGV[4] actor
-- ARGV[5]   a user whose sessions end, '' for none
-- ARGV[6]   only those of this device class, '' for all
-- ARGV[7]   but this one, '' for none
-- ARGV[8]   how many ids follow
-- ARGV[9…]  ids, then bans: user, key, record, reason, actor of each
-- reply     ids that ended, packed
-- cost      O(log n) for each session

local cause, reason, actor, user, device, except = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local ids, affected, seen = {}, {}, {}

local function close(s, why, because, by)
  finish(s, at, why, because, by)
  ids[#ids + 1] = s.id
  if not seen[s.user] then
    seen[s.user] = true
    affected[#affected + 1] = s.user
  end
end

advance()
local bans = 9 + tonumber(ARGV[8])
for i = 9, bans - 1 do
  local s = load(ARGV[i])
  if s and not overdue(s) then close(s, cause, reason, actor) end
end
if user ~= '' then
  for _, s in ipairs(sessionsOf(user)) do
    if (device == '' or s.device == device) and s.id ~= except then close(s, cause, reason, actor) end
  end
end
for i = bans, #ARGV, 5 do
  for _, s in ipairs(sessionsOf(ARGV[i])) do close(s, 'banned', ARGV[i + 3], ARGV[i + 4]) end
end
for i = bans, #ARGV, 5 do
  call('HSET', key('bans'), ARGV[i + 1], ARGV[i + 2])
  emit('log', USER_BANNED, ARGV[i], {reason = ARGV[i + 3], actor = ARGV[i + 4]})
end
for _, u in ipairs(affected) do
  if #sessionsOf(u) == 0 then hide(u) end
end
return done(table.concat(ids))

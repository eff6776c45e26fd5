-- Takes marks back.
--
-- ARGV[2]   recalls when the archive was asked; '' if it was not
-- ARGV[3]   how many first days in the archive follow: of all users for whom it
--           was asked, each as user, kind or '' for all kinds, day or -1
-- ARGV[…]   user, kind or '' for the user's own, day, …
-- reply     {1, how many there were}, or {0, recalls, user, …} and nothing changed
--           if the archive has to be asked first for these
-- cost      O(1) for each, and O(days) for each that was a user's first or last

local recalls = call('HGET', part, 'recalls') or '0'
local archived, at2 = {}, 4
for _ = 1, tonumber(ARGV[3]) do
  local of = archived[ARGV[at2]] or {}
  of[ARGV[at2 + 1]] = tonumber(ARGV[at2 + 2])
  archived[ARGV[at2]] = of
  at2 = at2 + 3
end
if ARGV[2] ~= recalls then archived = {} end -- what it said may not hold any more
local marks, need, asked = {}, {'0', recalls}, {}
for i = at2, #ARGV, 3 do
  local user, kind, day = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local n = tonumber(call('HGET', key('num'), user) or -1)
  if n >= 0 then
    if kind == '' then kind = call('HGET', key('user:' .. user), 'kind') or 'user' end
    marks[#marks + 1] = {user, n, kind, day}
    if not archived[user] and not asked[user] and isAway(n) and (first(kind, n) == day or first('', n) == day) then
      asked[user] = true
      need[#need + 1] = user
    end
  end
end
if #need > 2 then return done(need) end
advance()
local taken = 0
for _, m in ipairs(marks) do
  if unmark(m[2], m[3], m[4], archived[m[1]] or {}) then taken = taken + 1 end
end
for _, m in ipairs(marks) do
  if tonumber(call('HGET', key('num'), m[1]) or -1) == m[2] then release(m[1], m[2]) end
end
return done({'1', num(taken)})

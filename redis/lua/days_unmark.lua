-- needs: env days_index days
-- Takes marks back.
--
-- ARGV[2]   recalls when the archive was asked; '' if it was not
-- ARGV[3]   how many first days in the archive follow: of all users for whom it
--           was asked, each as user, kind or '' for all kinds, day or -1
-- ARGV[…]   user, kind or '' for the user's own, day, …
-- reply     {1, of each mark that is done 1 if it was there, else 0}, or {0, recalls,
--           user, …} and nothing changed if the archive has to be asked first for
--           these
-- cost      O(1) for each, and O(days) for each that was a user's first: few of those

local recalls = call('HGET', part, 'archivechange') or '0'
local archived, at2 = {}, 4
for _ = 1, tonumber(ARGV[3]) do
  local of = archived[ARGV[at2]] or {}
  of[ARGV[at2 + 1]] = tonumber(ARGV[at2 + 2])
  archived[ARGV[at2]] = of
  at2 = at2 + 3
end
if ARGV[2] ~= recalls then archived = {} end -- what it said may not hold any more
local marks, need, asked, taken, total = {}, {'0', recalls}, {}, {}, 0
for i = at2, #ARGV, 3 do
  local user, kind, day = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  total = total + 1
  taken[total] = '0'
  local n = tonumber(call('HGET', key('num'), user) or -1)
  if n >= 0 then
    if kind == '' then kind = call('HGET', key('user:' .. user), 'kind') or 'user' end
    marks[#marks + 1] = {user, n, kind, day, total}
    if not archived[user] and not asked[user] and isAway(n) and (first(kind, n) == day or first('', n) == day) then
      asked[user] = true
      need[#need + 1] = user
    end
  end
end
if #need > 2 then return done(need) end
advance()
local n = 0
for _, m in ipairs(marks) do
  if looked > 1000 then break end -- days, in search of others that are the first now
  if unmark(m[2], m[3], m[4], archived[m[1]] or {}) then taken[m[5]] = '1' end
  offer(m[2])
  n = m[5]
end
if n == 0 or n == marks[#marks][5] then n = total end
tidyNumbers(100)
return done({'1', table.concat(taken, '', 1, n)})

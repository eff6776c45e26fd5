-- needs: env days_index days days_release
-- Removes marks.
--
-- returns  {1, of each mark that is done 1 if it was there, else 0}; or {0, the field
--          archivechange, user, …} and nothing is changed, if the caller has to ask
--          the archive first for the first days of these users
-- costs    O(1) for each, and O(days) for each that was a user's first: few of those

local asOf = ARGV[2] -- the field archivechange when the archive was asked; '' if it was not
local firsts = tonumber(ARGV[3]) -- how many first days in the archive follow
local list = argumentsFrom(4) -- those: user, kind or '' for all, day or -1, …; then the marks: user, kind or '' for the user's own, day, …

-- What the archive said. It does not hold if the archive has changed since.
local archiveChange = call('HGET', part, 'archivechange') or '0'
local archived, marksFrom = {}, 3 * firsts + 1
for i = 1, marksFrom - 1, 3 do
  local of = archived[list[i]] or {}
  of[list[i + 1]] = tonumber(list[i + 2])
  archived[list[i]] = of
end
if asOf ~= archiveChange then archived = {} end

-- Of whom does the archive have to be asked? Of those who may lose their first day
-- and have marks there.
local marks, need, asked, removed, total = {}, {'0', archiveChange}, {}, {}, 0
for i = marksFrom, #list, 3 do
  local user, kind, day = list[i], list[i + 1], tonumber(list[i + 2])
  total = total + 1
  removed[total] = '0'
  local n = tonumber(call('HGET', key('num'), user) or -1)
  if n >= 0 then
    if kind == '' then kind = call('HGET', key('user:' .. user), 'kind') or 'user' end
    marks[#marks + 1] = {user, n, kind, day, total}
    if not archived[user] and not asked[user] and hasArchivedMarks(n) and (firstDay(kind, n) == day or firstDay('', n) == day) then
      asked[user] = true
      need[#need + 1] = user
    end
  end
end
if #need > 2 then return done(need) end

-- Remove them, until the search for other first days has taken long enough.
advance()
local n = 0
for _, m in ipairs(marks) do
  if daysLookedAt > 1000 then break end
  if unmark(m[2], m[3], m[4], archived[m[1]] or {}) then removed[m[5]] = '1' end
  noteIfMarkless(m[2])
  n = m[5]
end
if n == 0 or n == marks[#marks][5] then n = total end
releaseNumbers(100)
return done({'1', table.concat(removed, '', 1, n)})

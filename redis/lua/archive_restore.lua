-- needs: env days_index days
-- Enters marks of days that had departed, as no change.
--
-- ARGV[2…]  user, kind, day, …
-- reply     1
-- cost      O(1) for each

advance()
for i = 2, #ARGV, 3 do
  local n, field = number(ARGV[i]), ARGV[i + 1] .. ':' .. ARGV[i + 2]
  if add(dayKey(field), key('days'), field, n) then
    notLaterThan(ARGV[i + 1], n, tonumber(ARGV[i + 2]))
    notLaterThan('', n, tonumber(ARGV[i + 2]))
    if not inArchive(field) then -- it did not count in the figures
      reopen(ARGV[i + 1], tonumber(ARGV[i + 2]))
      countChange()
    end
  end
end
return done(1)

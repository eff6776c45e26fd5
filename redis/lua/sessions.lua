-- How many live sessions users have.
--
-- ARGV[2]   1 if invisible users have none
-- ARGV[3…]  users
-- reply     for each, in order: how many
-- cost      O(1) for each of their sessions

local public, out = ARGV[2] == '1', {}
for i = 3, #ARGV do
  local n = 0
  if not (public and invisible(ARGV[i])) then
    for _, sid in ipairs(call('ZRANGE', key('u:' .. ARGV[i]), 0, -1)) do
      local s = load(sid)
      if s and at < deadline(s) then n = n + 1 end
    end
  end
  out[i - 2] = n
end
return done(out)

-- Counts what figures leave out for the sake of invisible users.
--
-- reply    {invisible users with a last-seen time, their sessions in the order
--          of logins}
-- cost     O(1) for each invisible user and each of their sessions

local seen, sessions = 0, 0
for _, user in ipairs(call('SMEMBERS', key('hidden'))) do
  if call('ZSCORE', key('seen'), user) then seen = seen + 1 end
  sessions = sessions + call('ZCARD', key('u:' .. user))
end
return done({seen, sessions})

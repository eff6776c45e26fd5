-- Who is invisible. Needs env.lua. Gives invisible, anyHidden, makeInvisible and
-- makeVisible.

-- Invisible users stand in hidden with the score that they have in seen, 0 for
-- none.
local someHidden

local function anyHidden()
  if someHidden == nil then someHidden = call('EXISTS', key('hidden')) == 1 end
  return someHidden
end

local function invisible(user)
  return anyHidden() and call('ZSCORE', key('hidden'), user) ~= false
end

local function makeInvisible(user)
  call('ZADD', key('hidden'), call('ZSCORE', key('seen'), user) or 0, user)
  someHidden = true
end

local function makeVisible(user)
  call('ZREM', key('hidden'), user)
  someHidden = nil
end

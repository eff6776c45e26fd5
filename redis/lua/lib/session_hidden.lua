-- Which sessions are hidden from the public: those of invisible users, which stand in an
-- order of their own; see hideSession of session.lua. Needs env.lua. Gives areHidden and
-- visibleOnly.

-- areHidden tells for each of some sessions whether it is hidden: a table by place.
local function areHidden(sids)
  local name = key('invisible:login')
  if #sids == 0 or call('EXISTS', name) == 0 then return {} end
  return call('ZMSCORE', name, unpack(sids))
end

-- visibleOnly returns those of some sessions that are not hidden.
local function visibleOnly(sids)
  local out, hidden = {}, areHidden(sids)
  for i, sid in ipairs(sids) do
    if not hidden[i] then out[#out + 1] = sid end
  end
  return out
end

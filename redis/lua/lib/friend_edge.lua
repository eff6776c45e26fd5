-- Edges from a user to friends: friend_change.go tells of the order of steps. Gives
-- newStamp, stampOf, setStamps, noteLeftovers, leftoversOf and forgetStamps.
--
-- x:<user>   the friends whose reverse edge may stand without the edge, by the
--            stamp of the step that noted them, and two stamps of the user: LAST,
--            of the last change of the list, and FENCE, of the last step that gave
--            reverse edges up
-- leftovers  the users who have such a key, by their latest stamp

local LAST, FENCE = '', '\1' -- no user has these names

-- newStamp returns a stamp greater than all before it in the partition.
local function newStamp()
  local t = call('TIME')
  local value = math.max(tonumber(call('HGET', part, 'edgestamp') or 0) + 1, t[1] * 1000000 + t[2])
  call('HSET', part, 'edgestamp', num(value))
  return num(value)
end

-- stampOf returns a stamp of a user. One that was forgotten was no later than the
-- partition's edgefloor.
local function stampOf(user, which)
  return tonumber(call('ZSCORE', key('x:' .. user), which) or call('HGET', part, 'edgefloor') or 0)
end

-- setStamps sets the stamps of a user; FENCE only if asked.
local function setStamps(user, value, fence)
  call('ZADD', key('x:' .. user), value, LAST)
  if fence then call('ZADD', key('x:' .. user), value, FENCE) end
  call('ZADD', key('leftovers'), value, user)
end

-- noteLeftovers notes friends whose reverse edge may stand without the edge.
local function noteLeftovers(user, value, friends)
  if #friends == 0 then return end
  local add = {}
  for i = 1, #friends do add[2 * i - 1], add[2 * i] = value, friends[i] end
  call('ZADD', key('x:' .. user), unpack(add))
  call('ZADD', key('leftovers'), 'GT', value, user)
end

-- leftoversOf returns some of the friends in x:<user>.
local function leftoversOf(user, most)
  local out = {}
  for _, name in ipairs(call('ZRANGE', key('x:' .. user), 0, most + 1)) do
    if name ~= LAST and name ~= FENCE then out[#out + 1] = name end
  end
  return out
end

-- forgetStamps removes the stamps of a user.
local function forgetStamps(user)
  local line = math.max(stampOf(user, LAST), stampOf(user, FENCE), tonumber(call('HGET', part, 'edgefloor') or 0))
  call('HSET', part, 'edgefloor', num(line))
  call('UNLINK', key('x:' .. user))
  call('ZREM', key('leftovers'), user)
end

-- Erasures under way: user_erase.go has their steps. Gives erasureOf, saveErasure,
-- forgetErasure, keepErasing and stillErasing.
--
-- erasure:<user>  the note of an erasure: its id, 16 bytes, and the ban key of the
--                 user, 16 bytes. Once the user is removed also the place of the last
--                 event that may name them, and from which place of log and of pres
--                 on events are still to be looked at, 8 bytes each
-- erasing         these users, by when the upkeep goes on with them (ms)

local noteLength = 32     -- of a note whose user is still there
local erasurePause = 5000 -- ms; if nobody has gone on for so long, their server died

local function erasureOf(user)
  local blob = call('GET', key('erasure:' .. user))
  if not blob then return nil end
  local x = {user = user, id = string.sub(blob, 1, 16), ban = string.sub(blob, 17, noteLength)}
  if #blob > noteLength then x.last, x.log, x.pres = struct.unpack('>I8I8I8', blob, noteLength + 1) end
  return x
end

-- keepErasing tells the upkeep that somebody goes on with an erasure.
local function keepErasing(user) call('ZADD', key('erasing'), num(at + erasurePause), user) end

local function saveErasure(x)
  local left = x.last and struct.pack('>I8I8I8', x.last, x.log, x.pres) or ''
  call('SET', key('erasure:' .. x.user), x.id .. x.ban .. left)
  keepErasing(x.user)
end

local function forgetErasure(user)
  call('DEL', key('erasure:' .. user))
  call('ZREM', key('erasing'), user)
end

-- stillErasing returns an erasure whose user is still there; nil if the user is
-- gone or the erasure is over. A login after that makes a new user.
local function stillErasing(user, id)
  local x = erasureOf(user)
  if not x or x.id ~= id or x.last then return nil end
  keepErasing(user)
  return x
end

-- Stores a pass to the console. Passes that are over go, and those that are too many.
--
-- returns  1
-- costs    O(number of passes)

local passes = KEYS[1] -- rc:passes
local now = tonumber(ARGV[1]) -- ms
local hash = ARGV[2] -- of the pass's text
local record = ARGV[3]
local per_holder, most = tonumber(ARGV[4]), tonumber(ARGV[5])

-- Those that expire last stay, as many as there may be beside the new one.
local function keep_last(some, room)
  table.sort(some, function(a, b)
    if a.expires ~= b.expires then return a.expires < b.expires end
    return a.hash < b.hash
  end)
  for i = 1, #some - room do
    redis.call('HDEL', passes, some[i].hash)
    some[i].gone = true
  end
end

-- What is over goes first.
local new = cjson.decode(record)
local own, all = {}, {}
local stored = redis.call('HGETALL', passes)
for i = 1, #stored, 2 do
  local pass = string.sub(stored[i + 1], 1, 6) ~= 'taken ' and cjson.decode(stored[i + 1])
  if not pass or pass.expires <= now then
    redis.call('HDEL', passes, stored[i])
  elseif stored[i] ~= hash then
    pass.hash = stored[i]
    all[#all + 1] = pass
    if pass.kind == new.kind and pass.key == new.key and pass.name == new.name then own[#own + 1] = pass end
  end
end

-- Then what is too much: the holder's, then anyone's.
keep_last(own, per_holder - 1)
local left = {}
for _, pass in ipairs(all) do
  if not pass.gone then left[#left + 1] = pass end
end
keep_last(left, most - 1)
redis.call('HSET', passes, hash, record)
return 1

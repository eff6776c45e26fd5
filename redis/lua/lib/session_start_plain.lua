-- A plain login, in one piece. Needs env.lua and the arguments of session_start.lua. Gives no
-- function: it answers the login, or leaves it to what follows.
--
-- Most logins start a session and end none. For them the functions of the parts would be
-- made for nothing, as Redis makes them anew with every run: that took longer than all the
-- commands of a login. So this makes none. It reads first, and leaves every login that is not
-- plain, before anything is written, to what follows it. A plain login writes what
-- storeSession, emit, recordBeat and mark would write; a test compares them.
--
-- Plain is a login without a retry key and without sessions to end, of a user who is
-- visible, not banned, not being erased and not large, whose other sessions are few and not
-- past their deadline, on a device that has no session, with a timeout that is in use.
repeat
  if retry ~= '' or evictIDs ~= '' or endedAhead ~= '' or not kindIsKnown then break end
  if (cutoffs > 0 or largeUsers > 0) and call('EXISTS', root .. ':cutoff:' .. user, root .. ':us:' .. user) > 0 then break end

  -- The user: what most of them have nothing of is looked at closely only where it exists.
  if call('EXISTS', root .. ':erasure:' .. user, root .. ':bans', root .. ':hidden') > 0 then
    if call('EXISTS', root .. ':erasure:' .. user) == 1 then break end
    if call('HEXISTS', root .. ':bans', banKey) == 1 or call('ZSCORE', root .. ':hidden', user) then break end
  end
  local own = call('HMGET', root .. ':user:' .. user, 'kind', 'name')
  local kind, name = kind ~= '' and kind or own[1] or 'user', userName ~= '' and userName or own[2] or ''

  -- The policy, as policyFor finds it.
  local idle, life, max, maxDevice, bestScore = nil, nil, nil, nil, -1
  local policyCount, place = struct.unpack('>I2', policies)
  for _ = 1, policyCount do
    local ofKind, ofApp, ofDevice, itsIdle, itsLife, itsMax, itsMaxDevice, _, nextPlace = struct.unpack('>Bc0Bc0Bc0I8I8I4I4B', policies, place)
    place = nextPlace
    if (ofKind == '' or ofKind == kind) and (ofApp == '' or ofApp == app) and (ofDevice == '' or ofDevice == device) then
      local score = (ofKind ~= '' and 1 or 0) + (ofApp ~= '' and 1 or 0) + (ofDevice ~= '' and 1 or 0)
      if score > bestScore then idle, life, max, maxDevice, bestScore = itsIdle, itsLife, itsMax, itsMaxDevice, score end
    end
  end
  local idleText = num(idle)
  local idleOrder, mine, line = root .. ':idle:' .. idleText, root .. ':u:' .. user, effectiveNow(at)
  if call('SISMEMBER', root .. ':idles', idleText) == 0 then break end

  -- The user's other sessions: below every limit, with no deadline that has passed, and not
  -- of this device. Those of another timeout or with an absolute end are looked at elsewhere.
  local count = call('ZCARD', mine)
  if count > 0 then
    if count >= 64 or (max > 0 and count >= max) or (maxDevice > 0 and count >= maxDevice) then break end
    local sids, due = call('ZRANGE', mine, 0, -1), false
    for _, seen in ipairs(call('ZMSCORE', idleOrder, unpack(sids))) do
      if not seen or tonumber(seen) + idle <= line then due = true end
    end
    if due then break end
    for _, ends in ipairs(call('ZMSCORE', root .. ':ends', unpack(sids))) do
      if ends then due = true end
    end
    if due then break end
    if deviceID ~= '' and call('HEXISTS', root .. ':d:' .. user, deviceID) == 1 then break end
  end

  -- Presence: who was offline is announced online, and nothing else is left to tell.
  local seenOrder = root .. ':seen'
  local last = presenceEvents == 1 and tonumber(call('ZSCORE', seenOrder, user) or 0)
  local returns = last and (last < offlineBefore or last < math.max(1, math.floor(line / 1000) - offlineWindow))
  if returns and last > 0 then
    if last >= offlineBefore then break end
  elseif returns and call('EXISTS', root .. ':loggedout') == 1 and call('ZSCORE', root .. ':loggedout', user) then
    break
  end

  -- The login is plain. Its id is later than all others of the partition.
  local more = call('HMGET', part, 'newestid', 'flow', 'numbers', 'markchange')
  local start, newest = struct.pack('>I6', at) .. random, more[1]
  if newest and string.sub(start, 1, 6) == string.sub(newest, 1, 6) then
    local high, low = struct.unpack('>I4I4', random)
    local newestHigh, newestLow = struct.unpack('>I4I4', newest, 7)
    if high < newestHigh or (high == newestHigh and low <= newestLow) then
      newestLow = newestLow + 1
      if newestLow > 4294967295 then newestHigh, newestLow = newestHigh + 1, 0 end
      start = string.sub(newest, 1, 6) .. struct.pack('>I4I4', newestHigh % 4294967296, newestLow)
    end
  end
  local sid, login = start .. home, num(at)
  local blob = struct.pack('>BI8I8c16Bc0Bc0Bc0Bc0Bc0Bc0Bc0', 1, idle, life, tokenHash, #user, user, #kind, kind, #app, app,
    #device, device, #deviceID, deviceID, #address, address, #name, name) .. rest

  -- Store the session.
  call('HSET', root .. ':sessions', sid, blob)
  call('HSET', root .. ':tokens:' .. string.sub(tokenHash, 1, 1), string.sub(tokenHash, 2), sid)
  call('ZADD', mine, login, sid)
  call('ZADD', idleOrder, login, sid)
  if life > 0 then call('ZADD', root .. ':ends', num(at + life), sid) end
  if deviceID ~= '' then call('HSET', root .. ':d:' .. user, deviceID, sid) end
  call('ZADD', root .. ':by:kind:' .. kind, login, sid)
  call('SADD', root .. ':kinds', kind)
  if app ~= '' then
    call('ZADD', root .. ':by:app:' .. app, login, sid)
    call('ZADD', root .. ':counts:app', 'INCR', '1', app)
  end
  if device ~= '' then
    call('ZADD', root .. ':by:device:' .. device, login, sid)
    call('ZADD', root .. ':counts:device', 'INCR', '1', device)
  end
  if app ~= '' or device ~= '' then
    call('HINCRBY', root .. ':classes', struct.pack('Bc0Bc0Bc0', #kind, kind, #app, app, #device, device), 1)
  end
  if address ~= '' then call('ZADD', root .. ':by:ip:' .. address, login, sid) end

  -- Its events, and the beat.
  if not micros then
    local t = call('TIME')
    micros = t[1] * 1000000 + t[2]
  end
  lastEvent = math.max(lastEvent + 1, micros)
  call('XADD', root .. ':log', num(lastEvent) .. '-0', 'e', struct.pack('>BBI8Bc0Bc0BI2B', 0, 0, at, #user, user, #sid, sid, 0, 0, 0))
  call('ZADD', seenOrder, 'GT', num(math.floor(at / 1000)), user)
  if returns then
    if last > 0 then call('SREM', root .. ':announced', user) end
    lastEvent = lastEvent + 1
    call('XADD', root .. ':pres', num(lastEvent) .. '-0', 'e', struct.pack('>BBI8Bc0BBI2B', 2, 0, at, #user, user, 0, 0, 0, 0))
  end
  local flow = more[2] or string.rep('\0', 72)
  local state = {'clock', login, 'newestid', start, 'lastevent', num(lastEvent), 'lastpublic', num(lastEvent), 'beats', num(beats + 1),
    'flow', struct.pack('>I8', struct.unpack('>I8', flow) + 1) .. string.sub(flow, 9)}

  -- The mark, in the day and among those that the archive has yet to copy. A user without a
  -- number is given one.
  if day ~= '' then
    local numbers, isNew = tonumber(more[3] or 0), false
    local n = call('HGET', root .. ':num', user)
    if not n then
      n = call('SPOP', root .. ':free')
      if not n then
        n, isNew, numbers = num(numbers), true, numbers + 1
        state[#state + 1], state[#state + 2] = 'numbers', num(numbers)
      end
      call('HSET', root .. ':num', user, n)
      call('HSET', root .. ':ids:' .. math.floor(n / 64), n, user)
    end
    local marked = false
    for set = 1, 2 do
      local index, ofKind, name = root .. ':days', day, root .. ':day:' .. kind .. ':' .. day
      if set == 2 then index, ofKind, name = root .. ':dirtymonths', month, root .. ':dirty:' .. kind .. ':' .. month end
      local isBitmap = call('TYPE', name).ok == 'string'
      local added = (isBitmap and call('SETBIT', name, n, 1) == 0) or (not isBitmap and call('SADD', name, n) == 1)
      if set == 1 and not added then break end
      marked = true
      local members = added and call('HINCRBY', index, kind .. ':' .. ofKind, 1) or 0
      if members == 1 then call('ZADD', index .. ':' .. kind, ofKind, ofKind) end
      if added and not isBitmap and members * (members <= 512 and 32 or 448) > numbers then
        local all = call('SMEMBERS', name)
        call('DEL', name)
        for _, m in ipairs(all) do call('SETBIT', name, m, 1) end
      end
    end

    -- What goes with a new mark: the first day of the kind and of all kinds, and figures
    -- that count it.
    if marked then
      local firstDay = struct.pack('>I4', day + 1)
      for i = 1, 2 do
        local name, from = root .. ':first:' .. (i == 1 and kind or ''), n * 4
        local before = not isNew and call('GETRANGE', name, from, from + 3) or ''
        if #before < 4 or before == '\0\0\0\0' or struct.unpack('>I4', before) > day + 1 then call('SETRANGE', name, from, firstDay) end
      end
      call('SADD', root .. ':firsts', kind, '')
      call('ZREM', root .. ':markless', n)
      if call('EXISTS', root .. ':figures') == 1 then
        local fields, put = {}, {}
        for d = tonumber(day), day + 30 do fields[#fields + 1], fields[#fields + 2] = kind .. ':' .. d, ':' .. d end
        for i, figures in ipairs(call('HMGET', root .. ':figures', unpack(fields))) do
          if figures and string.sub(figures, 21) ~= '\255\255\255\255' then
            put[#put + 1], put[#put + 2] = fields[i], string.sub(figures, 1, 20) .. '\255\255\255\255'
          end
        end
        if #put > 0 then call('HSET', root .. ':figures', unpack(put)) end
      end
      state[#state + 1], state[#state + 2] = 'markchange', num(math.max(tonumber(more[4] or 0) + 1, micros))
    end
  end
  call('HSET', part, unpack(state))
  return {'ok', sid, blob, login, num(effectiveDeadline(at + idle)), ''}
until true

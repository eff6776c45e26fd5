-- Policies. Gives policyFor.

local policyFor

do -- a script has room for 200 local names
  local unpacked -- the policies, once they are needed
  local policyOf = {} -- that were looked for already

  local function unpackPolicies(packed)
    unpacked = {}
    local count, place = struct.unpack('>I2', packed)
    for i = 1, count do
      local p = {}
      p.kind, p.app, p.device, p.idle, p.life, p.max, p.maxDevice, p.overflow, place =
        struct.unpack('>Bc0Bc0Bc0I8I8I4I4B', packed, place)
      unpacked[i] = p
    end
  end

  -- score returns how many of kind, app and device a policy names; nil if it does not
  -- match.
  local function score(p, kind, app, device)
    local n = 0
    if p.kind ~= '' then
      if p.kind ~= kind then return nil end
      n = n + 1
    end
    if p.app ~= '' then
      if p.app ~= app then return nil end
      n = n + 1
    end
    if p.device ~= '' then
      if p.device ~= device then return nil end
      n = n + 1
    end
    return n
  end

  -- policyFor returns the one policy that applies, whole: of those that match,
  -- the one that names most of kind, app and device; among equals the first.
  function policyFor(packed, kind, app, device)
    local wanted = #kind .. ':' .. kind .. #app .. ':' .. app .. device
    if policyOf[wanted] then return policyOf[wanted] end
    if not unpacked then unpackPolicies(packed) end
    local best, bestScore = nil, -1
    for _, p in ipairs(unpacked) do
      local n = score(p, kind, app, device)
      if n and n > bestScore then best, bestScore = p, n end
    end
    policyOf[wanted] = best
    return best
  end
end

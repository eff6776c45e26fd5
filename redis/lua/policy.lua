-- Policies, for the scripts that apply one.

-- policyFor returns the one policy that applies, whole: of those that match,
-- the one that names most of kind, app and device; among equals the first.
local function policyFor(packed, kind, app, device)
  local best, bestScore = nil, -1
  local count, place = struct.unpack('>I2', packed)
  for _ = 1, count do
    local p = {}
    p.kind, p.app, p.device, p.idle, p.life, p.max, p.maxDevice, p.overflow, place =
      struct.unpack('>Bc0Bc0Bc0I8I8I4I4B', packed, place)
    local score = 0
    for name, value in pairs({kind = kind, app = app, device = device}) do
      if p[name] == value then
        if value ~= '' then score = score + 1 end
      elseif p[name] ~= '' then
        score = -100
      end
    end
    if score > bestScore then best, bestScore = p, score end
  end
  return best
end

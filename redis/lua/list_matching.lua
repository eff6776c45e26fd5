-- needs: env bytes due session_hidden
-- Reads a part of the sessions that meet two or three of kind, app and device, in login
-- order, and counts all, once those that are due have been ended.
--
-- The count comes from classes, which has how many sessions there are of each combination.
-- The part comes from the shortest order of those that the conditions name.
--
-- returns  {1 if more are due, count, ids packed, id to go on behind or '' at the end}; or
--          {2, …} if there are too many combinations to count them here
-- costs    O(combinations + sessions looked at · log n), bounded numbers of each

local kind, app, device = ARGV[2], ARGV[3], ARGV[4] -- '' for any
local down = ARGV[5] == '1' -- newest first
local behind = ARGV[6] -- id to begin behind, '' for none
local most = tonumber(ARGV[7]) -- sessions that the caller hopes for
local public = ARGV[8] == '1' -- leaves sessions of invisible users out
local counts = ARGV[9] == '1' -- asks for the count; else it is 0
local dueBudget = tonumber(ARGV[10]) -- due sessions to end; 0 leaves them

local MOST_CLASSES, MOST_LOOKED = 200, 200

if dueBudget > 0 and mustDrain() then
  -- needs: invisible event presence session_large session_read session session_due session_visibility session_cutoff
  if drainAll(dueBudget) >= dueBudget then return done({1, 0, '', ''}) end
end

-- countIn adds up the classes that meet the conditions. Kind, app and device stand behind
-- their lengths: only those that a condition names are cut out.
local function countIn(name)
  local n, classes = 0, call('HGETALL', key(name))
  for i = 1, #classes, 2 do
    local class = classes[i]
    local kindEnd = 1 + string.byte(class)
    local appEnd = kindEnd + 1 + string.byte(class, kindEnd + 1)
    if (kind == '' or string.sub(class, 2, kindEnd) == kind) and (app == '' or string.sub(class, kindEnd + 2, appEnd) == app)
      and (device == '' or string.sub(class, appEnd + 2) == device) then
      n = n + classes[i + 1]
    end
  end
  return n
end

local count = 0
if counts then
  if call('HLEN', key('classes')) > MOST_CLASSES then return done({2, 0, '', ''}) end
  count = countIn('classes')
  if public and call('EXISTS', key('invisible:classes')) == 1 then count = count - countIn('invisible:classes') end
  if count == 0 then return done({0, 0, '', ''}) end
end
if most == 0 then return done({0, count, '', ''}) end

-- The shortest order has the candidates; all others have to have them too.
local orders, base, length = {}, nil, nil
for field, value in pairs({kind = kind, app = app, device = device}) do
  if value ~= '' then
    local order = key('by:' .. field .. ':' .. value)
    local n = call('ZCARD', order)
    if not base or n < length then base, length, order = order, n, base end
    if order then orders[#orders + 1] = order end
  end
end

-- Look at as many as should hold what the caller hopes for.
local looked = MOST_LOOKED
if counts then looked = math.min(looked, math.ceil(most * length / count)) end
local rank = behind ~= '' and rankBehind(base, down, num(struct.unpack('>I6', behind)), behind) or 0
local sids = rangeOf(base, down, rank, rank + looked - 1)
local out, scores, hidden = {}, {}, public and areHidden(sids) or {}
if #sids > 0 then
  for i, order in ipairs(orders) do scores[i] = call('ZMSCORE', order, unpack(sids)) end
end
for i, sid in ipairs(sids) do
  local all = not hidden[i]
  for o = 1, #orders do all = all and scores[o][i] end
  if all then out[#out + 1] = sid end
end
return done({0, count, table.concat(out), #sids == looked and sids[looked] or ''})

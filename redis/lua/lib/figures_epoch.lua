-- epoch is that of figures of closed days which are made now, see days.lua.
local function epoch() return struct.pack('>I4', call('HGET', part, 'epoch') or 0) end

-- The cache of figures of past days: see docs/formats.md. Gives figuresEpoch.

-- figuresEpoch returns what stands behind figures that are cached now: figures with
-- another epoch behind them are stale.
local function figuresEpoch() return struct.pack('>I4', call('HGET', part, 'epoch') or 0) end

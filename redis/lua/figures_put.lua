-- needs: env figures
-- Caches figures of past days, unless marks changed since the figures were made.
--
-- returns  1, or 0 if marks changed
-- costs    O(days)

local markChange = tonumber(ARGV[2]) -- the field of that name when the figures were made
local kind = ARGV[3] -- '' for all
local figures = argumentsFrom(4) -- day, figures packed, …

if tonumber(call('HGET', part, 'markchange') or 0) ~= markChange then return done(0) end
local epoch = figuresEpoch()
for i = 1, #figures, 2 do call('HSET', key('figures'), kind .. ':' .. figures[i], figures[i + 1] .. epoch) end
return done(1)

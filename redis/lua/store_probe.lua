-- Tries every command that scripts use, so that a user of Redis who lacks the right
-- to one is refused when the engine opens, and not in the middle of a change.
--
-- returns  1
-- costs    O(1)

local k = KEYS[1] -- rc:{p}:probe; there is none when the script returns

local call = redis.call
local function try(...)
  for _, command in ipairs({...}) do call(unpack(command)) end
  call('DEL', k)
end
call('DEL', k)
call('TIME')
call('EXISTS', k)
call('TYPE', k)
try({'SET', k, '1'}, {'GET', k}, {'PEXPIRE', k, 60000}, {'PERSIST', k})
try({'SET', k, '1'}, {'RENAME', k, k}, {'UNLINK', k})
try({'SETRANGE', k, 0, 'a'}, {'GETRANGE', k, 0, 0})
try({'SETBIT', k, 0, 1}, {'GETBIT', k, 0}, {'BITCOUNT', k}, {'BITOP', 'AND', k, k, k})
try({'HSET', k, 'a', 1}, {'HSETNX', k, 'a', 1}, {'HGET', k, 'a'}, {'HMGET', k, 'a'}, {'HGETALL', k}, {'HKEYS', k},
  {'HEXISTS', k, 'a'}, {'HLEN', k}, {'HINCRBY', k, 'a', 1}, {'HDEL', k, 'a'})
try({'ZADD', k, 1, 'a'}, {'ZSCORE', k, 'a'}, {'ZMSCORE', k, 'a'}, {'ZRANK', k, 'a'}, {'ZCARD', k}, {'ZCOUNT', k, 0, 1}, {'ZRANGE', k, 0, 0},
  {'ZRANGEBYSCORE', k, 0, 1}, {'ZREVRANGEBYSCORE', k, 1, 0}, {'ZREMRANGEBYSCORE', k, 5, 6}, {'ZREM', k, 'a'})
try({'SADD', k, 'a', 'b'}, {'SISMEMBER', k, 'a'}, {'SMISMEMBER', k, 'a'}, {'SMEMBERS', k}, {'SCARD', k}, {'SPOP', k}, {'SREM', k, 'a'})
try({'XADD', k, '1-0', 'e', ''}, {'XRANGE', k, '-', '+'}, {'XLEN', k}, {'XTRIM', k, 'MAXLEN', 1}, {'XDEL', k, '1-0'})
try({'PFADD', k, 'a'}, {'PFCOUNT', k}, {'PFMERGE', k, k})
return 1

-- Sets all keys to our token for the TTL, unless one of them is there. Returns
--   {0, 0}   all are set
--   {i, ms}  the i-th has a value, and so long to live, in milliseconds as PTTL tells it: the one that lives longest
--
-- KEYS: the resources. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds.

local n=#KEYS
if redis.call('EXISTS',unpack(KEYS))==0 then
    for i=1,n do
        redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2])
    end
    return {0,0}
end

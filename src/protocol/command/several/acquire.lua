-- Follows in_the_way.lua. Sets all keys to our token for the TTL, unless one of them exists. Returns
--   {0, 0}   all are set
--   {i, ms}  the i-th has a value, and this is its PTTL in milliseconds; it is the key that lives longest
--
-- KEYS: the resources. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds.

local call,n,token,ttl=redis.call,#KEYS,ARGV[1],ARGV[2]
if call('EXISTS',unpack(KEYS))==0 then
    for i=1,n do
        call('SET',KEYS[i],token,'PX',ttl)
    end
    return {0,0}
end
return {in_the_way(n)}

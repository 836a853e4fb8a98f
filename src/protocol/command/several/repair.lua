-- Sets the missing keys to our token for the TTL, and gives the keys that have our token at least the TTL. Changes
-- nothing if one of the keys has another value. Returns
--   {0, 0}   all have our token
--   {i, ms}  the i-th has another value, and this is its PTTL in milliseconds
--
-- KEYS: the resources. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds.

local values=redis.call('MGET',unpack(KEYS))
for i=1,#KEYS do
    -- MGET returns the same for a list as for a missing key.
    if values[i]~=ARGV[1] and redis.call('EXISTS',KEYS[i])==1 then
        return {i,redis.call('PTTL',KEYS[i])}
    end
end
for i=1,#KEYS do
    if not values[i] then
        redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2])
    elseif redis.call('PTTL',KEYS[i])<tonumber(ARGV[2]) then
        redis.call('PEXPIRE',KEYS[i],ARGV[2])
    end
end
return {0,0}

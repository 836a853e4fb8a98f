-- Sets those keys to our token for the TTL that are not there, and gives it to those that have our token; nothing
-- if one of them has another value. Returns
--   {0, 0}   all have our token
--   {i, ms}  the i-th has another value, and so long to live, in milliseconds as PTTL tells it
--
-- KEYS: the resources. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds.

local values=redis.call('MGET',unpack(KEYS))
for i=1,#KEYS do
    -- MGET says of a list what it says of no key.
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

-- Lets the keys that have our token end after the given time. Never makes a key live longer. Returns 1 if all keys have
-- our token, and 0 otherwise.
--
-- KEYS: the resources. ARGV[1]: the token. ARGV[2]: the time in milliseconds.

local ours=1
for i=1,#KEYS do
    if redis.pcall('GET',KEYS[i])==ARGV[1] then
        if redis.call('PTTL',KEYS[i])>tonumber(ARGV[2]) then
            redis.call('PEXPIRE',KEYS[i],ARGV[2])
        end
    else
        ours=0
    end
end
return ours

-- Lets the keys that have our token end after the given time. Never makes a key live longer; one without an end gets
-- one. Returns 1 if all keys have our token, and 0 otherwise. A key of another type is not ours; any other error of the
-- server is returned.
--
-- KEYS: the resources. ARGV[1]: the token. ARGV[2]: the time in milliseconds.

local ours=1
for i=1,#KEYS do
    local v=redis.pcall('GET',KEYS[i])
    if v==ARGV[1] then
        local t=redis.call('PTTL',KEYS[i])
        if t<0 or t>tonumber(ARGV[2]) then
            redis.call('PEXPIRE',KEYS[i],ARGV[2])
        end
    else
        if type(v)=='table' and not string.find(v.err,'WRONGTYPE') then
            return v
        end
        ours=0
    end
end
return ours

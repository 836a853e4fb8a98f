-- Deletes the keys that have our token. Returns how many there were.
--
-- KEYS: the resources. ARGV[1]: the token.

local token,n=ARGV[1],0
local values=redis.call('MGET',unpack(KEYS))
for i=1,#KEYS do
    if values[i]==token then
        n=n+1
        KEYS[n]=KEYS[i]
    end
end
if n>0 then
    redis.call('DEL',unpack(KEYS,1,n))
end
return n

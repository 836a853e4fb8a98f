-- Returns who holds a lock on this server: {token, ms} for each holder, where ms is the remaining time, or -1 without
-- an end. A key of another type is not a lock: returns its type.
--
-- KEYS[1]: the resource. KEYS[2]: its readers, each with its end by this server's clock.

local v=redis.pcall('GET',KEYS[1])
if not v then
    return {}
elseif type(v)=='table' then
    return redis.call('TYPE',KEYS[1]).ok
elseif v~='redlock:shared' then
    return {{v,redis.call('PTTL',KEYS[1])}}
end
local t=redis.call('TIME')
local now=t[1]*1000+math.floor(t[2]/1000)
local readers=redis.call('ZRANGEBYSCORE',KEYS[2],'('..string.format('%.0f',now),'+inf','WITHSCORES')
local found={}
for i=1,#readers,2 do
    found[#found+1]={readers[i],readers[i+1]-now}
end
return found

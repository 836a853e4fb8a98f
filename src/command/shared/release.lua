-- Leaves the readers of a resource; the last of them deletes it. Deletes a lock that is ours and exclusive here. Returns
--   1  it was ours
--   0  it was not, or had ended
--
-- KEYS[1]: the resource. KEYS[2]: its readers. ARGV[1]: the token. ARGV[2]: the longest TTL that there is.

local v=redis.call('GET',KEYS[1])
if v==ARGV[1] then
    return redis.call('DEL',KEYS[1])
end
if v~='redlock:shared' then
    return 0
end
local s=redis.call('ZSCORE',KEYS[2],ARGV[1])
if not s then
    return 0
end
redis.call('ZREM',KEYS[2],ARGV[1])
local t=redis.call('TIME')
local now=t[1]*1000+math.floor(t[2]/1000)
local last=redis.call('ZRANGE',KEYS[2],-1,-1,'WITHSCORES')[2]
if last then
    last=string.format('%.0f',math.min(tonumber(last),now+ARGV[2]))
    redis.call('PEXPIREAT',KEYS[1],last)
    redis.call('PEXPIREAT',KEYS[2],last)
else
    redis.call('DEL',KEYS[1])
end
if tonumber(s)<now then
    return 0
end
return 1

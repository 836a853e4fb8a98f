-- Leaves the readers of a resource; the last of them deletes it. Deletes a lock that is ours and exclusive here. Returns
--   1  it was ours
--   2  the same, nobody has the resource now, and somebody who waits for it was told (wake.lua)
--   0  it was not, or had ended
--
-- KEYS[1]: the resource. KEYS[2]: its readers. ARGV[1]: the token. ARGV[2]: the longest TTL that there is.

local v=redis.call('GET',KEYS[1])
local ours=1
if v==ARGV[1] then
    redis.call('DEL',KEYS[1])
elseif v=='redlock:shared' then
    local s=redis.call('ZSCORE',KEYS[2],ARGV[1])
    if not s then
        return 0
    end
    redis.call('ZREM',KEYS[2],ARGV[1])
    local t=redis.call('TIME')
    local now=t[1]*1000+math.floor(t[2]/1000)
    if tonumber(s)<now then
        ours=0
    end
    local last=redis.call('ZRANGE',KEYS[2],-1,-1,'WITHSCORES')[2]
    if last and tonumber(last)>now then
        last=string.format('%.0f',math.min(tonumber(last),now+ARGV[2]))
        redis.call('PEXPIREAT',KEYS[1],last)
        redis.call('PEXPIREAT',KEYS[2],last)
        return ours
    end
    redis.call('DEL',KEYS[1],KEYS[2])
else
    return 0
end

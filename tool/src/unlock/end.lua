-- Ends the lock of the holders with these tokens on this server, and of nobody else. Returns how many of them had it.
--
-- KEYS[1]: the resource. KEYS[2]: its readers, each with its end by this server's clock. ARGV: the tokens.

local v=redis.pcall('GET',KEYS[1])
if v=='redlock:shared' then
    local ended=0
    for i=1,#ARGV do
        ended=ended+redis.call('ZREM',KEYS[2],ARGV[i])
    end
    local t=redis.call('TIME')
    local now=string.format('%.0f',t[1]*1000+math.floor(t[2]/1000))
    if redis.call('ZCOUNT',KEYS[2],'('..now,'+inf')==0 then
        redis.call('DEL',KEYS[1],KEYS[2])
    end
    return ended
end
for i=1,#ARGV do
    if v==ARGV[i] then
        return redis.call('DEL',KEYS[1])
    end
end
return 0

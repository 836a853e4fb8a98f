-- Joins the readers of a resource. Never shortens what we have there. Returns
--   {1, 0}   we are one of them
--   {0, ms}  the resource has another value, and so long to live, in milliseconds as PTTL tells it
--   {2, ms}  a writer waits, and readers wait for it: so long, unless it says so again
--   {3, 0}   something else stands where the readers are to stand, and nothing was done
--
-- KEYS[1]: the resource. KEYS[2]: its readers, each with the end of its time by this server's clock.
-- KEYS[3]: whether a writer waits. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds. ARGV[3]: for how long a
-- writer says that it waits; what stands there for longer is none. ARGV[4]: the longest TTL that there is.
--
-- The resource lives until the last of the readers ends, and so do they. Between the commands that change something no
-- error can come, but for what this user may not do: then what nobody had before is free again.

local v=redis.pcall('GET',KEYS[1])
if type(v)=='table' and not string.find(v.err,'WRONGTYPE') then
    return v
end
if v and v~='redlock:shared' then
    return {0,redis.call('PTTL',KEYS[1])}
end
local i=redis.call('PTTL',KEYS[3])
if i>=0 and i<=tonumber(ARGV[3]) then
    return {2,i}
end
local k=redis.call('TYPE',KEYS[2]).ok
if k~='zset' and k~='none' then
    return {3,0}
end
local t=redis.call('TIME')
local now=t[1]*1000+math.floor(t[2]/1000)
local till=now+ARGV[2]
local done,why=pcall(function()
    if v then
        till=math.max(till,tonumber(redis.call('ZSCORE',KEYS[2],ARGV[1]) or 0))
        redis.call('ZREMRANGEBYSCORE',KEYS[2],'-inf','('..string.format('%.0f',now))
    else
        redis.call('SET',KEYS[1],'redlock:shared','PX',ARGV[2])
        redis.call('DEL',KEYS[2])
    end
    redis.call('ZADD',KEYS[2],string.format('%.0f',till),ARGV[1])
    local last=tonumber(redis.call('ZRANGE',KEYS[2],-1,-1,'WITHSCORES')[2])
    last=string.format('%.0f',math.min(last,now+ARGV[4]))
    redis.call('PEXPIREAT',KEYS[1],last)
    redis.call('PEXPIREAT',KEYS[2],last)
end)
if not done then
    if not v then
        redis.pcall('DEL',KEYS[1],KEYS[2])
    end
    error(why,0)
end
return {1,0}

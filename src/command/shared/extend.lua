-- Gives a reader at least the TTL, if it is one still. Never shortens it, and never makes it one. A lock of ours that is
-- exclusive here becomes a reader's: with a TTL of 0 it keeps its end. Returns what it found, and how long that had to
-- live before, in milliseconds:
--   {0, -2}  we have nothing here
--   {1, ms}  it is ours
--   {2, ms}  it has another value, and is left alone
--   {3, 0}   something else stands where the readers are to stand, and nothing was done
--
-- KEYS[1]: the resource. KEYS[2]: its readers. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds. ARGV[3]: the
-- longest TTL that there is. A lock that may not be made a shared one, since this user may not do all that it takes, is
-- exclusive as before.

local v=redis.call('GET',KEYS[1])
if not v then
    return {0,-2}
end
local left=redis.call('PTTL',KEYS[1])
local t=redis.call('TIME')
local now=t[1]*1000+math.floor(t[2]/1000)
local set='redlock:shared'
if v==ARGV[1] then
    local k=redis.call('TYPE',KEYS[2]).ok
    if k~='zset' and k~='none' then
        return {3,0}
    end
    if left<0 then
        left=tonumber(ARGV[3])
    end
elseif v==set then
    local s=tonumber(redis.call('ZSCORE',KEYS[2],ARGV[1]) or 0)
    if s<now then
        return {0,-2}
    end
    left=math.min(s-now,tonumber(ARGV[3]))
else
    return {2,left}
end
local done,why=pcall(function()
    if v==set then
        redis.call('ZREMRANGEBYSCORE',KEYS[2],'-inf','('..string.format('%.0f',now))
    else
        redis.call('DEL',KEYS[2])
        redis.call('SET',KEYS[1],set,'PX',math.max(left,1))
    end
    redis.call('ZADD',KEYS[2],string.format('%.0f',now+math.max(left,tonumber(ARGV[2]))),ARGV[1])
    local last=tonumber(redis.call('ZRANGE',KEYS[2],-1,-1,'WITHSCORES')[2])
    last=string.format('%.0f',math.min(last,now+ARGV[3]))
    redis.call('PEXPIREAT',KEYS[1],last)
    redis.call('PEXPIREAT',KEYS[2],last)
end)
if not done then
    if v~=set then
        redis.pcall('SET',KEYS[1],v,'PX',math.max(left,1))
        redis.pcall('DEL',KEYS[2])
    end
    error(why,0)
end
return {1,left}

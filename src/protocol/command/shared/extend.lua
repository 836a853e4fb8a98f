-- Gives a reader at least the TTL, if it still is a reader. Never shortens its time, and never makes it a reader
-- again. If the lock is ours and exclusive here, turns it into a shared lock: with a TTL of 0, it keeps its end.
-- Returns what it found, and the remaining time before the call, in milliseconds:
--   {0, -2}  we hold nothing here
--   {1, ms}  it is ours
--   {2, ms}  it has another value, and is left alone
--   {3, 0}   the key of the readers has another type, and nothing was done
--
-- KEYS[1]: the resource. KEYS[2]: its readers. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds. ARGV[3]: the
-- maximum TTL of any lock, in milliseconds. If this user may not run all commands that turn the lock into a shared
-- one, the lock stays exclusive.

local call,key,set=redis.call,KEYS[1],KEYS[2]
local v=call('GET',key)
if not v then
    return {0,-2}
end
-- Read before the clock is read. Otherwise an end later than ours could be mistaken for an earlier one.
local left=call('PTTL',key)
local is_shared=v=='redlock:shared'
if not is_shared and v~=ARGV[1] then
    return {2,left}
end
local t=call('TIME')
local now=t[1]*1000+math.floor(t[2]/1000)
local had,n=left
if is_shared then
    local s=tonumber(call('ZSCORE',set,ARGV[1]) or 0)
    if s<now then
        return {0,-2}
    end
    had=s-now
else
    n=redis.pcall('ZCARD',set)
    if type(n)=='table' then
        return n.err:find('WRONGTYPE') and {3,0} or n
    end
end
local longest=tonumber(ARGV[3])
if had<0 or had>longest then
    had=longest
end
local ttl=math.max(had,tonumber(ARGV[2]))
local till=string.format('%.0f',now+ttl)
if is_shared then
    call('ZADD',set,till,ARGV[1])
    if left>=0 and left<=ttl then
        call('PEXPIREAT',key,till)
        call('PEXPIREAT',set,till)
    end
    return {1,had}
end
local done,why=pcall(function()
    call('SET',key,'redlock:shared','PXAT',till)
    if n>0 then
        call('DEL',set)
    end
    call('ZADD',set,till,v)
    call('PEXPIREAT',set,till)
end)
if not done then
    redis.pcall('SET',key,v,'PX',math.max(had,1))
    redis.pcall('DEL',set)
    error(why,0)
end
return {1,had}

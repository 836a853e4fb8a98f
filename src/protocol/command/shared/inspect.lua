-- Shows who holds a resource. Returns
--   {value, ms}  its value, or the beginning of it, and the remaining time; empty and -2: it does not exist
--   {1, ms}      we are one of its readers, for this remaining time
--   {0, ms, n}   n readers hold it, and we are not one of them
--
-- A value of another type counts as an empty one. As long as the resource says that readers hold it, nobody else can
-- take it. So at least one other holds it, also if the key of the readers has another type, or knows none that is left.
--
-- KEYS[1]: the resource. KEYS[2]: its readers. ARGV[1]: the token. ARGV[2]: how many bytes of a value are read at
-- most. ARGV[3]: the maximum TTL of any lock, in milliseconds.

local v=redis.pcall('GETRANGE',KEYS[1],0,ARGV[2]-1)
if type(v)=='table' then
    if not v.err:find('WRONGTYPE') then
        return v
    end
    v=''
end
local left=redis.call('PTTL',KEYS[1])
if v~='redlock:shared' then
    return {v,left}
end
local t=redis.call('TIME')
local now=t[1]*1000+math.floor(t[2]/1000)
local s=redis.pcall('ZSCORE',KEYS[2],ARGV[1])
if type(s)=='table' then
    return s.err:find('WRONGTYPE') and {0,left,1} or s
end
s=tonumber(s or 0)
if s>=now then
    return {1,math.min(s-now,tonumber(ARGV[3]))}
end
return {0,left,math.max(1,redis.call('ZCOUNT',KEYS[2],string.format('%.0f',now),'+inf'))}

-- Raises each counter to at least a fencing token, if all locks are ours, and returns 1. Returns 0 if a lock is not
-- ours, and 2 if a counter is not a number.
--
-- KEYS: the resources, and their counters in the same order. ARGV[1]: the token. ARGV[2]: the fencing token.
-- ARGV[3]: the minimum TTL of a counter, in milliseconds.

local n=#KEYS/2
local values=redis.call('MGET',unpack(KEYS,1,n))
local behind={}
for i=1,n do
    if values[i]~=ARGV[1] then
        return 0
    end
    local c=tonumber(string.match(redis.call('GET',KEYS[n+i]) or '0','^%d+$'))
    if not c then
        return 2
    end
    if c<tonumber(ARGV[2]) then
        behind[#behind+1]=KEYS[n+i]
    end
end
local t=redis.call('TIME')
local ahead=ARGV[2]-t[1]*1000000-t[2]
local ttl=ARGV[3]+math.max(0,math.ceil(ahead/1000))
for i=1,#behind do
    redis.call('SET',behind[i],ARGV[2],'PX',string.format('%.0f',ttl))
end
return 1

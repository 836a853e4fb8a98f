-- Raises the counter to at least a fencing token, if the lock is ours, and returns 1. Returns 0 if the lock is not
-- ours, and 2 if the counter is not a number.
--
-- KEYS[1]: the resource. KEYS[2]: its counter. ARGV[1]: the token. ARGV[2]: the fencing token. ARGV[3]: the minimum
-- TTL of the counter, in milliseconds. The time until the server's clock reaches the fencing token is added to this
-- TTL.

if redis.call('GET',KEYS[1])~=ARGV[1] then
    return 0
end
local c=redis.call('GET',KEYS[2])
local last=tonumber(string.match(c or '0','^%d+$'))
if not last then
    return 2
end
if last<tonumber(ARGV[2]) then
    local t=redis.call('TIME')
    local ahead=ARGV[2]-t[1]*1000000-t[2]
    local ttl=ARGV[3]+math.max(0,math.ceil(ahead/1000))
    redis.call('SET',KEYS[2],ARGV[2],'PX',string.format('%.0f',ttl))
end
return 1

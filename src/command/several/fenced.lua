-- Sets all keys to our token for the TTL, unless one of them exists, and draws one fencing token for all. Returns
--   {0, number}  all are set, and this number was drawn; all counters are set to it
--   {i, ms}      the i-th has a value, and this is its PTTL in milliseconds; it is the key that lives longest
--   {-1, 0}      a counter is not a number that can grow, and nothing was done
--
-- KEYS: the resources, and their counters in the same order. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds.
-- ARGV[3]: the time on the client's clock, in microseconds. ARGV[4]: how far the number may be from the server's
-- clock, in microseconds. ARGV[5]: the minimum TTL of a counter, in milliseconds.

local call,n=redis.call,#KEYS/2
local last,same=0
for i=n+1,2*n do
    local c=call('GET',KEYS[i])
    -- Usually all counters are equal.
    if c~=same then
        same=c
        c=tonumber(string.match(c or '0','^%d+$'))
        if not c or c>=9007199254740991 then
            return {-1,0}
        end
        last=math.max(last,c)
    end
end
if call('EXISTS',unpack(KEYS,1,n))==0 then
    local t=call('TIME')
    local now=t[1]*1000000+t[2]
    local drawn=math.max(now-ARGV[4],math.min(now+ARGV[4],tonumber(ARGV[3])),last+1)
    local text=string.format('%.0f',drawn)
    local ttl=string.format('%.0f',ARGV[5]+math.max(0,math.ceil((drawn-now)/1000)))
    for i=1,n do
        call('SET',KEYS[i],ARGV[1],'PX',ARGV[2])
        call('SET',KEYS[n+i],text,'PX',ttl)
    end
    return {0,drawn}
end

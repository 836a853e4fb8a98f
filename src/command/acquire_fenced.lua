-- Sets the key to our token for the TTL, unless it exists, and draws a fencing token. Returns
--   {1, number}  the key is set, and this number was drawn
--   {0, ms}      the key has a value, and this is its PTTL in milliseconds
--   {3, ms}      readers hold it, and this is its PTTL
--   {2, 0}       the counter is not a number that can grow, and nothing was done
--
-- KEYS[1]: the resource. KEYS[2]: its counter. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds. ARGV[3]: the
-- time on the client's clock, in microseconds. ARGV[4]: how far the number may be from the server's clock, in
-- microseconds. ARGV[5]: the minimum TTL of the counter, in milliseconds. The time until the server's clock reaches
-- the number is added to this TTL.

local call=redis.call
local c=call('GET',KEYS[2])
local last=tonumber(string.match(c or '0','^%d+$'))
if not last or last>=9007199254740991 then
    return {2,0}
end
if not call('SET',KEYS[1],ARGV[1],'PX',ARGV[2],'NX') then
    local by=0
    if redis.pcall('GET',KEYS[1])=='redlock:shared' then
        by=3
    end
    return {by,call('PTTL',KEYS[1])}
end
local t=call('TIME')
local now=t[1]*1000000+t[2]
local drawn=math.max(now-ARGV[4],math.min(now+ARGV[4],tonumber(ARGV[3])))
if drawn<=last then
    drawn=last+1
end
local ttl=ARGV[5]
if drawn>now then
    ttl=ttl+math.ceil((drawn-now)/1000)
end
call('SET',KEYS[2],string.format('%.0f',drawn),'PX',ttl)
return {1,drawn}

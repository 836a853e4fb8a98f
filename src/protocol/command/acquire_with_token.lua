-- Follows draw.lua. Sets the key to our token for the TTL, unless it exists, and draws a fencing token. Also returns
--   {0, ms}  the key has a value, and this is its PTTL in milliseconds
--   {3, ms}  readers hold it, and this is its PTTL

if not call('SET',KEYS[1],ARGV[1],'PX',ARGV[2],'NX') then
    local by=0
    if redis.pcall('GET',KEYS[1])=='redlock:shared' then
        by=3
    end
    return {by,call('PTTL',KEYS[1])}
end
return draw()

-- Follows in_the_way.lua and ../draw.lua. Sets all keys to our token for the TTL, unless one of them exists, and draws
-- one fencing token for all. Also returns
--   {i, ms}  the i-th has a value, and this is its PTTL in milliseconds; it is the key that lives longest

if call('EXISTS',unpack(KEYS,1,n))==0 then
    for i=1,n do
        call('SET',KEYS[i],ARGV[1],'PX',ARGV[2])
    end
    return draw()
end
return {in_the_way(n)}

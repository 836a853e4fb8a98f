-- Says that a writer waits, if readers have the resource: those that come now wait for it. 1 if it was said, else 0.
--
-- KEYS[1]: the resource. KEYS[2]: where it is said. ARGV[1]: for how long, in milliseconds.

if redis.pcall('GET',KEYS[1])~='redlock:shared' then
    return 0
end
local v=redis.pcall('GET',KEYS[2])
if v and v~='redlock:writer' then
    return 0
end
redis.call('SET',KEYS[2],'redlock:writer','PX',ARGV[1])
return 1

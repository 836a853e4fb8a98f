-- Announces a waiting writer, if readers hold the resource. New readers then wait for the writer. Returns 1 if the
-- announcement was made, else 0.
--
-- KEYS[1]: the resource. KEYS[2]: the key of the announcement. ARGV[1]: its TTL, in milliseconds.

if redis.pcall('GET',KEYS[1])~='redlock:shared' then
    return 0
end
local v=redis.pcall('GET',KEYS[2])
if v and v~='redlock:writer' then
    return 0
end
redis.call('SET',KEYS[2],'redlock:writer','PX',ARGV[1])
return 1

-- Adds a waiter to the wait queue of a resource, unless the resource is free. Returns
--   {1, 0, 0}      it is free: the waiter was not added to the queue
--   {0, ms, rank}  a client holds it, and this is its PTTL; rank: how many waiters are ahead
--   {2, ms, rank}  the same, and readers hold it
--
-- KEYS[1]: the resource. KEYS[2]: its wait queue. ARGV[1]: the waiter's channel. ARGV[2]: since when it waits, by
-- its clock, in microseconds. This is used as far as it agrees with this server's clock. ARGV[3]: the TTL of the
-- queue from now on, in ms.

if redis.call('EXISTS',KEYS[1])==0 then
    return {1,0,0}
end
local what=0
if redis.pcall('GET',KEYS[1])=='redlock:shared' then
    what=2
end
local t=redis.call('TIME')
local now=t[1]*1000000+t[2]
local since=math.max(now-600000000,math.min(now+1000000,tonumber(ARGV[2])))
redis.call('ZADD',KEYS[2],string.format('%.0f',since),ARGV[1])
redis.call('PEXPIRE',KEYS[2],ARGV[3])
return {what,redis.call('PTTL',KEYS[1]),redis.call('ZRANK',KEYS[2],ARGV[1])}

-- Follows stand.lua. Adds a waiter to the wait queue of a resource, unless the resource is free. Returns
--   {1, 0, 0}      it is free: the waiter was not added to the queue
--   {0, ms, rank}  a client holds it, and this is its PTTL; rank: how many waiters are ahead
--   {2, ms, rank}  the same, and readers hold it
--
-- KEYS[1]: the resource. KEYS[2]: its wait queue. ARGV: as for stand().

if redis.call('EXISTS',KEYS[1])==0 then
    return {1,0,0}
end
local what=0
if redis.pcall('GET',KEYS[1])=='redlock:shared' then
    what=2
end
local rank=stand(KEYS[2],0)
return {what,redis.call('PTTL',KEYS[1]),rank}

-- Follows wake.lua. Removes a waiter from the wait queue, and returns 0. If the waiter was already notified that the
-- resource is free, and the resource still is free, notifies the next waiter instead, and returns 2 or 1. If readers
-- hold the resource, and the waiter was not in the queue, notifies the readers at the front of the queue, and returns 2.
--
-- KEYS[1]: the resource. KEYS[2]: its wait queue. ARGV[1]: the waiter's channel.

if redis.call('ZREM',KEYS[2],ARGV[1])==1 then
    return 0
end
local v=redis.pcall('GET',KEYS[1])
if v=='redlock:shared' then
    return wake(KEYS[2],KEYS[1],2)
elseif v then
    return 0
end
return wake(KEYS[2],KEYS[1],1)

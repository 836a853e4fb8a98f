-- Follows wake.lua. Removes a waiter from the wait queue of a semaphore, and returns 0. If the waiter was already
-- notified that a permit is free, and one still is free, notifies the next waiter instead, and returns 2 or 1.
--
-- KEYS: the slots, and the wait queue. ARGV[1]: the waiter's channel.

local n=#KEYS-1
if redis.call('ZREM',KEYS[n+1],ARGV[1])==1 then
    return 0
end
for i=1,n do
    if redis.call('EXISTS',KEYS[i])==0 then
        return wake(KEYS[n+1],KEYS[i],1)
    end
end
return 0

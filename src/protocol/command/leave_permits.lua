-- Removes a waiter from the wait queue of a semaphore, and returns 0. If the waiter was already notified that a
-- permit is free, and one still is free, notifies the next waiter instead (wake_each.lua), and returns 2 or 1.
--
-- KEYS: the slots, and the wait queue. ARGV[1]: the waiter's channel.

local n=#KEYS-1
if redis.call('ZREM',KEYS[n+1],ARGV[1])==1 then
    return 0
end
local free={}
for i=1,n do
    if #free==0 and redis.call('EXISTS',KEYS[i])==0 then
        free[1]=KEYS[i]
    end
end
if #free==0 then
    return 0
end
local lines={KEYS[n+1]}

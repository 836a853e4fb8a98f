-- Removes a waiter from the wait queue of a slot, and returns 0. If the waiter was already notified that the slot
-- is free, and the slot still is free, notifies the next clients that wait for it, or for any permit, instead
-- (wake_each.lua), and returns 2 or 1.
--
-- KEYS[1]: the slot. KEYS[2]: its wait queue. KEYS[3]: the wait queue of the semaphore. ARGV[1]: the waiter's
-- channel.

if redis.call('ZREM',KEYS[2],ARGV[1])==1 or redis.call('EXISTS',KEYS[1])==1 then
    return 0
end
local free={KEYS[1],KEYS[1]}
local lines={KEYS[2],KEYS[3]}

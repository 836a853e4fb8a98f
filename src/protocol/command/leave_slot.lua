-- Follows wake.lua. Removes a waiter from the wait queue of a slot, and returns 0. If the waiter was already notified
-- that the slot is free, and the slot still is free, notifies the next clients that wait for it, or for any permit,
-- instead, and returns 2 or 1.
--
-- KEYS[1]: the slot. KEYS[2]: its wait queue. KEYS[3]: the wait queue of the semaphore. ARGV[1]: the waiter's
-- channel.

if redis.call('ZREM',KEYS[2],ARGV[1])==1 or redis.call('EXISTS',KEYS[1])==1 then
    return 0
end
return math.max(wake(KEYS[2],KEYS[1],1),wake(KEYS[3],KEYS[1],1))

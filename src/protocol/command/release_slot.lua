-- Deletes a slot of a semaphore if it has our token. Then notifies the first of the clients that wait for this
-- slot, and the first of the clients that wait for any permit (wake_each.lua), and returns 2 or 1. Returns 0 if the
-- slot does not have our token, or does not exist.
--
-- KEYS[1]: the slot. KEYS[2]: its wait queue. KEYS[3]: the wait queue of the semaphore. ARGV[1]: the token.

if redis.call('GET',KEYS[1])~=ARGV[1] then
    return 0
end
redis.call('DEL',KEYS[1])
local free={KEYS[1],KEYS[1]}
local lines={KEYS[2],KEYS[3]}

-- Deletes a slot of a semaphore if it has our token, and tells the first of those who wait for it and of those who wait
-- for any permit (wake_each.lua): 2 or 1. If it has not, or is not there: 0.
--
-- KEYS[1]: the slot. KEYS[2]: its line. KEYS[3]: the line of the semaphore. ARGV[1]: the token.

if redis.call('GET',KEYS[1])~=ARGV[1] then
    return 0
end
redis.call('DEL',KEYS[1])
local free={KEYS[1],KEYS[1]}
local lines={KEYS[2],KEYS[3]}

-- Takes a waiter out of the line of a slot: 0. If it was told meanwhile that nobody has the slot, and nobody has it still,
-- the next of those who wait for it, or for any permit, are told instead (wake_each.lua): 2 or 1.
--
-- KEYS[1]: the slot. KEYS[2]: its line. KEYS[3]: the line of the semaphore. ARGV[1]: the waiter's channel.

if redis.call('ZREM',KEYS[2],ARGV[1])==1 or redis.call('EXISTS',KEYS[1])==1 then
    return 0
end
local free={KEYS[1],KEYS[1]}
local lines={KEYS[2],KEYS[3]}

-- Takes a waiter out of the line of a semaphore: 0. If it was told meanwhile that a permit is free, and one is still, the
-- next in line is told instead (wake_each.lua): 2 or 1.
--
-- KEYS: the slots, and the line. ARGV[1]: the waiter's channel.

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

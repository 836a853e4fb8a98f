-- Deletes every slot of a semaphore that has our token, but for one if that is to stay, and tells the first of those who
-- wait for a permit (wake_each.lua): 2 or 1. If none has it: 0.
--
-- KEYS: the slots, and the line. ARGV[1]: the token. ARGV[2]: the number of the slot that stays, from 1; 0: none does.

local n=#KEYS-1
local v=redis.call('MGET',unpack(KEYS,1,n))
local free,lines={},{}
for i=1,n do
    if v[i]==ARGV[1] and i~=tonumber(ARGV[2]) then
        redis.call('DEL',KEYS[i])
        free[#free+1]=KEYS[i]
        lines[#lines+1]=KEYS[n+1]
    end
end
if #free==0 then
    return 0
end

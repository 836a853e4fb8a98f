-- Deletes every slot of a semaphore that has our token, except for one slot if that must stay. Notifies the first
-- of the clients that wait for a permit (wake_each.lua), and returns 2 or 1. Returns 0 if no slot was deleted.
--
-- KEYS: the slots, and the wait queue. ARGV[1]: the token. ARGV[2]: the number of the slot that stays, from 1; 0:
-- none.

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

-- Follows wake.lua. Deletes every slot of a semaphore that has our token, except for one slot if that must stay. For
-- each, notifies the first of the clients that wait for a permit, and returns 2 or 1. Returns 0 if no slot was deleted.
--
-- KEYS: the slots, and the wait queue. ARGV[1]: the token. ARGV[2]: the number of the slot that stays, from 1; 0:
-- none.

local n=#KEYS-1
local v=redis.call('MGET',unpack(KEYS,1,n))
local told=0
for i=1,n do
    if v[i]==ARGV[1] and i~=tonumber(ARGV[2]) then
        redis.call('DEL',KEYS[i])
        told=math.max(told,wake(KEYS[n+1],KEYS[i],1))
    end
end
return told

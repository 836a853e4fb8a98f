-- Deletes every slot of a semaphore that has our token, except for one slot if that must stay. Returns how many
-- slots it deleted.
--
-- KEYS: the slots. ARGV[1]: the token. ARGV[2]: the number of the slot that stays, from 1; 0: none.

local v=redis.call('MGET',unpack(KEYS))
local n=0
for i=1,#KEYS do
    if v[i]==ARGV[1] and i~=tonumber(ARGV[2]) then
        n=n+redis.call('DEL',KEYS[i])
    end
end
return n

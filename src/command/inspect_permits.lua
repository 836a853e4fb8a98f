-- Tells who has the slots of a semaphore: for each that is taken its number, from 1, the beginning of its value, and
-- how long it has to live, as PTTL tells it. Changes nothing.
--
-- KEYS: the slots. ARGV[1]: how much of a value is told.

local v=redis.call('MGET',unpack(KEYS))
local told={}
for i=1,#KEYS do
    if v[i] then
        told[#told+1]=i
        told[#told+1]=string.sub(v[i],1,ARGV[1])
        told[#told+1]=redis.call('PTTL',KEYS[i])
    end
end
return told

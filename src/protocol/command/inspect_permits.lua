-- Follows slots.lua. Shows who holds the slots of a semaphore. Returns for each taken slot its number, from 1, the
-- beginning of its value, and its PTTL. Changes nothing.
--
-- KEYS: the slots. ARGV[1]: how many bytes of a value are returned at most.

local told={}
for i=1,#KEYS do
    if v[i] then
        told[#told+1]=i
        told[#told+1]=string.sub(v[i],1,ARGV[1])
        told[#told+1]=redis.call('PTTL',KEYS[i])
    end
end
return told

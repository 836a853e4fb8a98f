-- The beginning of the scripts that look at the slots of a semaphore. Reads them: v[i] is the value of the i-th, or
-- false if it is free. MGET returns the same for a value of another type as for a missing key. Here such a value is
-- an empty one.
--
-- KEYS: the slots.

local v=redis.call('MGET',unpack(KEYS))
local n=0
for i=1,#KEYS do
    if v[i] then
        n=n+1
    end
end
local all=redis.pcall('EXISTS',unpack(KEYS))
if type(all)=='number' and all>n then
    for i=1,#KEYS do
        v[i]=v[i] or redis.call('EXISTS',KEYS[i])==1 and ''
    end
end

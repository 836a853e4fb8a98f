-- Deletes those keys that have our token. Returns how many they were.
--
-- KEYS: the resources. ARGV[1]: the token.

local values=redis.call('MGET',unpack(KEYS))
local ours={}
for i=1,#KEYS do
    if values[i]==ARGV[1] then
        ours[#ours+1]=KEYS[i]
    end
end
if #ours>0 then
    redis.call('DEL',unpack(ours))
end
return #ours

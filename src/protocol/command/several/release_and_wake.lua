-- Follows ../wake.lua. Deletes the keys that have our token, and notifies the first waiters in their wait queues.
-- Returns how many keys had our token, and 2 if a waiter was notified, else 1.
--
-- KEYS: the resources, and the wait queues of some. ARGV[1]: the token. ARGV[2]: the number of resources. Further
-- arguments: the number of the resource of each queue, from 1.

local n,token=tonumber(ARGV[2]),ARGV[1]
local values=redis.call('MGET',unpack(KEYS,1,n))
local ours={}
for i=1,n do
    if values[i]==token then
        ours[#ours+1]=KEYS[i]
    end
end
if #ours>0 then
    redis.call('DEL',unpack(ours))
end
local told=1
-- Usually no client waits for any of them.
if redis.pcall('EXISTS',unpack(KEYS,n+1))==0 then
    return {#ours,told}
end
for i=3,#ARGV do
    local place=tonumber(ARGV[i])
    if values[place]==token then
        told=math.max(told,wake(KEYS[n+i-2],KEYS[place],1))
    end
end
return {#ours,told}

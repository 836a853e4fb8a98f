-- Follows in_the_way.lua, ../wake.lua and ../stand.lua. Finds out which of several resources is in the way, and adds a
-- waiter to the wait queue of that resource. Removes the waiter from the other queues that are given. Adds it to no
-- queue if all resources are free. Returns
--   {1, 0, 0, 0}      all are free: the waiter was not added to a queue
--   {0, ms, rank, i}  the i-th has a value, and this remaining time, the longest of all; rank: how many
--                     waiters are ahead
--   {2, ms, rank, i}  the same, and readers hold it
-- A rank of -1 means that the queue of the i-th was not given, and that the waiter is in none.
--
-- If the waiter was already notified that another resource is free, and that still is free, notifies the next
-- waiter in that queue.
--
-- KEYS: the resources, and the wait queues of some. ARGV[1..3]: as for stand(). ARGV[4]: the number of resources.
-- Further arguments: the number of the resource of each queue, from 1.

local n=tonumber(ARGV[4])
if redis.call('EXISTS',unpack(KEYS,1,n))==0 then
    return {1,0,0,0}
end
local at,left=in_the_way(n)
if at==0 then
    return {1,0,0,0}
end
local line
local free={}
for i=5,#ARGV do
    local place,key=tonumber(ARGV[i]),KEYS[n+i-4]
    if place==at then
        line=key
    elseif redis.call('ZREM',key,ARGV[1])==0 and redis.call('EXISTS',KEYS[place])==0 then
        free[#free+1]={key,KEYS[place]}
    end
end
for i=1,#free do
    wake(free[i][1],free[i][2],1)
end
local what=0
if redis.pcall('GET',KEYS[at])=='redlock:shared' then
    what=2
end
return {what,left,line and stand(line,0) or -1,at}

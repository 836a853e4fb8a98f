-- Finds out which of several resources is in the way, and adds a waiter to the wait queue of that resource. Removes
-- the waiter from the other queues that are given. Adds it to no queue if all resources are free. Returns
--   {1, 0, 0, 0}      all are free: the waiter was not added to a queue
--   {0, ms, rank, i}  the i-th has a value, and this remaining time, the longest of all; rank: how many
--                     waiters are ahead
--   {2, ms, rank, i}  the same, and readers hold it
-- A rank of -1 means that the queue of the i-th was not given, and that the waiter is in none.
--
-- If the waiter was already notified that another resource is free, and that still is free, notifies the next
-- waiter in that queue.
--
-- KEYS: the resources, and the wait queues of some. ARGV[1..3]: as for stand.lua. ARGV[4]: the number of resources.
-- Further arguments: the number of the resource of each queue, from 1.

local n=tonumber(ARGV[4])
if redis.call('EXISTS',unpack(KEYS,1,n))==0 then
    return {1,0,0,0}
end

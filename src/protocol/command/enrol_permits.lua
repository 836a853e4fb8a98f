-- Follows stand.lua. Adds a waiter to the wait queue of a semaphore, unless a permit is free. Returns
--   {1, 0, 0}      a permit is free: the waiter was not added to the queue
--   {0, ms, rank}  all are taken; ms: the shortest remaining time of a slot (-1: none expires); rank: how many
--                  waiters are ahead
--
-- KEYS: the slots, and the wait queue. ARGV: as for stand().

local n=#KEYS-1
if redis.call('EXISTS',unpack(KEYS,1,n))<n then
    return {1,0,0}
end
local left=-1
for i=1,n do
    local t=redis.call('PTTL',KEYS[i])
    if t>=0 and (left<0 or t<left) then
        left=t
    end
end
return {0,left,stand(KEYS[n+1],0)}

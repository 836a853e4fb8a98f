-- Has a waiter stand in the line of a semaphore, unless a permit is free. Returns
--   {1, 0, 0}      one is free: the waiter was not put in the line
--   {0, ms, rank}  all are taken, and the first to end lives for so long (-1: none ends); so many stand before the waiter
--
-- KEYS: the slots, and the line. ARGV: as for stand.lua.

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
local what,line,more=0,KEYS[n+1],nil

-- The same as wake.lua for several wait queues. In each queue, notifies the first waiter that listens and, if that
-- is a reader, the readers right behind it. For the code that follows, `told` is 2 if a waiter was notified, else
-- 1. Never fails, because the changes before it have already been made.
--
-- free: the names of the free resources. lines: the wait queue of each.

local told=1
for i=1,#free do
    local readers=false
    for n=1,64 do
        if readers then
            local next=redis.pcall('ZRANGE',lines[i],0,0,'WITHSCORES')[2]
            if not next or next%1==0 then
                break
            end
        end
        local first=redis.pcall('ZPOPMIN',lines[i])
        local heard=first[1] and redis.pcall('PUBLISH',first[1],free[i])
        if type(heard)~='number' then
            break
        end
        if heard>0 then
            told=2
            if first[2]%1==0 then
                break
            end
            readers=true
        end
    end
end

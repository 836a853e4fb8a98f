-- The beginning of the scripts that free a resource, or leave its wait queue. wake() takes waiters from the front of a
-- wait queue and notifies them, until one of them listens. If that is a reader, it notifies the readers right behind
-- it, too: their scores are not whole numbers. Returns 2 if a waiter was notified, else 1. Never fails, because the
-- changes before it have already been made.
--
-- line: the key of the wait queue. free: the name of the resource. told: 1; or 2, if only readers are to be notified.

local function wake(line,free,told)
    for i=1,64 do
        if told==2 then
            local next=redis.pcall('ZRANGE',line,0,0,'WITHSCORES')[2]
            if not next or next%1==0 then
                break
            end
        end
        local first=redis.pcall('ZPOPMIN',line)
        if not first[1] then
            break
        end
        local heard=redis.pcall('PUBLISH',first[1],free)
        if type(heard)~='number' then
            break
        end
        if heard>0 then
            told=2
            if first[2]%1==0 then
                break
            end
        end
    end
    return told
end

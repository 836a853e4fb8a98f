-- Follows ../wake.lua and release.lua, at a point where nobody holds the resource any more. Notifies the waiters. A
-- writer that has announced itself comes before readers, because they wait for it. Otherwise the order is the usual one.
--
-- KEYS[3]: the wait queue. KEYS[4]: the announcement of a waiting writer.

if ours==0 then
    return 0
end
local line=KEYS[3]
if redis.pcall('EXISTS',KEYS[4])==1 then
    local all=redis.pcall('ZRANGE',line,0,63,'WITHSCORES')
    for i=1,#all,2 do
        if all[i+1]%1==0 then
            redis.pcall('ZREM',line,all[i])
            local heard=redis.pcall('PUBLISH',all[i],key)
            if type(heard)=='number' and heard>0 then
                return 2
            end
        end
    end
end
return wake(line,key,1)

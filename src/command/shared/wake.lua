-- Behind release.lua, where nobody has the resource any more: tells who waits for it. A writer that said that it waits
-- comes before readers, which wait for it; else it is as always (../wake.lua).
--
-- KEYS[3]: the line. KEYS[4]: whether a writer waits.

if ours==0 then
    return 0
end
local line=KEYS[3]
local told=1
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

-- The same as wake.lua for more than one line: tells the first of each that is there to hear it, and if that is a reader,
-- those right behind it. What comes behind it knows whether somebody was told (2) or nobody (1). Fails never: what came
-- before it is done.
--
-- free: the names of what is free. lines: the line of each.

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

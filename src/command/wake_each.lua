-- The same as wake.lua for more than one line: tells the first of each that is there to hear it. What comes behind it
-- knows whether somebody was told (2) or nobody (1). Fails never: what came before it is done.
--
-- free: the names of what is free. lines: the line of each.

local told=1
for i=1,#free do
    for n=1,64 do
        local first=redis.pcall('ZPOPMIN',lines[i])[1]
        if not first then
            break
        end
        local heard=redis.pcall('PUBLISH',first,free[i])
        if type(heard)~='number' then
            break
        end
        if heard>0 then
            told=2
            break
        end
    end
end

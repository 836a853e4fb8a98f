-- The end of every script that lets go of a resource: takes the first out of the line and tells it, until one is
-- there to hear it. If that is a reader, those that come right behind it are told, too: their scores are no whole numbers.
-- Returns 2 if somebody was told, else 1. Fails never: what came before it is done.
--
-- KEYS[1]: the resource. line: its line. told: 1; or 2, if none but readers are to be told.

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
    local heard=redis.pcall('PUBLISH',first[1],KEYS[1])
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

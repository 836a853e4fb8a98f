-- The end of every script that lets go of a resource: takes the first out of the line and tells it, until one is
-- there to hear it. Returns 2 if somebody was told, else 1. Fails never: what came before it is done.
--
-- KEYS[1]: the resource. KEYS[2]: its line.

for i=1,64 do
    local first=redis.pcall('ZPOPMIN',KEYS[2])[1]
    if not first then
        return 1
    end
    local heard=redis.pcall('PUBLISH',first,KEYS[1])
    if type(heard)~='number' then
        return 1
    end
    if heard>0 then
        return 2
    end
end
return 1

-- The part of enrol.lua that follows when it is known which resource is in the way (in_the_way.lua).

if at==0 then
    return {1,0,0,0}
end
local line
local free,lines={},{}
for i=5,#ARGV do
    local place,key=tonumber(ARGV[i]),KEYS[n+i-4]
    if place==at then
        line=key
    elseif redis.call('ZREM',key,ARGV[1])==0 and redis.call('EXISTS',KEYS[place])==0 then
        free[#free+1]=KEYS[place]
        lines[#lines+1]=key
    end
end

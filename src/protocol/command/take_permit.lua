-- Follows slots.lua. Takes one free slot of a semaphore for our token, or moves the token to another slot. Gives up
-- the slot that the token had before only if it got another one. So the token has at most one slot, and never fewer
-- than before. Returns {slot, map, ms}:
--   slot  the number of the slot that has our token, from 1; 0: none
--   map   for each slot 1 if it is taken, by any client, else 0
--   ms    if no slot has our token: the shortest remaining time of a slot, as its PTTL; -1: no slot expires
--
-- KEYS: the slots. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds. ARGV[3]: the slot to begin with. ARGV[4]:
-- how many slots to try from there on, in a circle.

local map,got,own={},0,0
for i=1,#KEYS do
    map[i]=v[i] and '1' or '0'
    if v[i]==ARGV[1] then
        own=i
    end
end
for n=0,ARGV[4]-1 do
    local i=(ARGV[3]-1+n)%#KEYS+1
    if i==own then
        break
    end
    if not v[i] then
        map[i]='1'
        if redis.call('SET',KEYS[i],ARGV[1],'PX',ARGV[2],'NX') then
            got=i
            break
        end
    end
end
if got>0 and own>0 then
    redis.call('DEL',KEYS[own])
    map[own]='0'
end
if got==0 then
    got=own
end
local ms=-1
if got==0 then
    for i=1,#KEYS do
        local t=redis.call('PTTL',KEYS[i])
        if t>=0 and (ms<0 or t<ms) then
            ms=t
        end
    end
end
return {got,table.concat(map),ms}

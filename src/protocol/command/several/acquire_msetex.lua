-- The same as acquire.lua, with the command for this that some servers have: MSETEX (Redis 8.4, Valkey 9.1).

local n=#KEYS
local set={}
for i=1,n do
    set[2*i-1]=KEYS[i]
    set[2*i]=ARGV[1]
end
set[#set+1]='NX'
set[#set+1]='PX'
set[#set+1]=ARGV[2]
if redis.call('MSETEX',n,unpack(set))==1 then
    return {0,0}
end
return {in_the_way(n)}

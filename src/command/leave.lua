-- Takes a waiter out of the line: 0. If it was told meanwhile that nobody has the resource, and nobody has it still,
-- the next in line is told instead (wake.lua): 2 or 1. If readers have it, and the waiter was not there, the readers at
-- the front of the line are told: 2.
--
-- KEYS[1]: the resource. KEYS[2]: its line. ARGV[1]: the waiter's channel.

if redis.call('ZREM',KEYS[2],ARGV[1])==1 then
    return 0
end
local line=KEYS[2]
local told=1
local v=redis.pcall('GET',KEYS[1])
if v=='redlock:shared' then
    told=2
elseif v then
    return 0
end

-- Has a waiter stand in the line of a resource, unless nobody has that. Returns
--   {1, 0, 0}      nobody has it: the waiter was not put in the line
--   {0, ms, rank}  somebody has it, for so long still, as PTTL tells it; so many stand before the waiter
--   {2, ms, rank}  the same, and it is readers that have it
--
-- KEYS[1]: the resource. KEYS[2]: its line. ARGV[1]: the waiter's channel. ARGV[2]: since when it waits, by its
-- clock, in microseconds: as far as that agrees with this server's. ARGV[3]: how long the line lives from now on, in ms.

if redis.call('EXISTS',KEYS[1])==0 then
    return {1,0,0}
end
local what=0
if redis.pcall('GET',KEYS[1])=='redlock:shared' then
    what=2
end
local t=redis.call('TIME')
local now=t[1]*1000000+t[2]
local since=math.max(now-600000000,math.min(now+1000000,tonumber(ARGV[2])))
redis.call('ZADD',KEYS[2],string.format('%.0f',since),ARGV[1])
redis.call('PEXPIRE',KEYS[2],ARGV[3])
return {what,redis.call('PTTL',KEYS[1]),redis.call('ZRANK',KEYS[2],ARGV[1])}

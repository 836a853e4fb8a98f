-- Has a reader stand in the line of a resource, unless it may join the readers. Returns
--   {1, 0, 0}      it may: it was not put in the line
--   {0, ms, rank}  somebody has the resource alone, for so long still, as PTTL tells it; so many stand before the reader
--   {2, ms, rank}  a writer waits, and readers wait for it: so long, unless it says so again
--
-- A reader's score is no whole number: half a microsecond more than since when it waits. By that it is known.
--
-- KEYS[1]: the resource. KEYS[2]: its line. KEYS[3]: whether a writer waits. ARGV[1]: the reader's channel. ARGV[2]: since
-- when it waits, by its clock, in microseconds: as far as that agrees with this server's. ARGV[3]: how long the line lives
-- from now on, in ms. ARGV[4]: for how long a writer says that it waits; what stands there for longer is none.

local v=redis.pcall('GET',KEYS[1])
local what=0
local left=0
if v and v~='redlock:shared' then
    left=redis.call('PTTL',KEYS[1])
else
    what=2
    left=redis.call('PTTL',KEYS[3])
    if left<0 or left>tonumber(ARGV[4]) then
        return {1,0,0}
    end
end
local t=redis.call('TIME')
local now=t[1]*1000000+t[2]
local since=math.max(now-600000000,math.min(now+1000000,tonumber(ARGV[2])))
redis.call('ZADD',KEYS[2],string.format('%.1f',since+0.5),ARGV[1])
redis.call('PEXPIRE',KEYS[2],ARGV[3])
return {what,left,redis.call('ZRANK',KEYS[2],ARGV[1])}

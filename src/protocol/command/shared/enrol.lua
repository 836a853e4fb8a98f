-- Adds a reader to the wait queue of a resource, unless the reader may join the readers. Returns
--   {1, 0, 0}      it may join: it was not added to the queue
--   {0, ms, rank}  a client holds the resource exclusively, and this is its PTTL; rank: how many waiters are ahead
--   {2, ms, rank}  a writer waits, so readers must wait; ms: how long its announcement lasts, unless the
--                  writer repeats it
--
-- A reader's score is not a whole number: half a microsecond is added to the time since when it waits. This marks
-- readers.
--
-- KEYS[1]: the resource. KEYS[2]: its wait queue. KEYS[3]: the announcement of a waiting writer. ARGV[1]: the
-- reader's channel. ARGV[2]: since when it waits, by its clock, in microseconds. This is used as far as it agrees
-- with this server's clock. ARGV[3]: the TTL of the queue from now on, in ms. ARGV[4]: the TTL of a writer's
-- announcement, in ms. A key with a longer TTL is not an announcement.

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

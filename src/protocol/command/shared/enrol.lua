-- Follows ../stand.lua. Adds a reader to the wait queue of a resource, unless the reader may join the readers. Returns
--   {1, 0, 0}      it may join: it was not added to the queue
--   {0, ms, rank}  a client holds the resource exclusively, and this is its PTTL; rank: how many waiters are ahead
--   {2, ms, rank}  a writer waits, so readers must wait; ms: how long its announcement lasts, unless the
--                  writer repeats it
--
-- KEYS[1]: the resource. KEYS[2]: its wait queue. KEYS[3]: the announcement of a waiting writer. ARGV[1..3]: as for
-- stand(). ARGV[4]: the TTL of a writer's announcement, in ms. A key with a longer TTL is not an announcement.

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
return {what,left,stand(KEYS[2],0.5)}

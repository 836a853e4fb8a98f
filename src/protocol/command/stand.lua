-- The beginning of the scripts that add a waiter to a wait queue. stand() adds it, and returns how many waiters are
-- ahead.
--
-- line: the key of the queue. mark: 0.5 for a reader, and 0 for any other waiter. It is added to the score.
--
-- ARGV[1]: the waiter's channel. ARGV[2]: since when it waits, by its clock, in microseconds. This is used as far as it
-- agrees with this server's clock. ARGV[3]: the TTL of the queue from now on, in ms.

local function stand(line,mark)
    local t=redis.call('TIME')
    local now=t[1]*1000000+t[2]
    local since=math.max(now-600000000,math.min(now+1000000,tonumber(ARGV[2])))
    redis.call('ZADD',line,string.format('%.1f',since+mark),ARGV[1])
    redis.call('PEXPIRE',line,ARGV[3])
    return redis.call('ZRANK',line,ARGV[1])
end

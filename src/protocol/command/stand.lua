-- The end of the scripts that add a waiter to a wait queue. Returns {what, ms, rank}, and one more value if there
-- is one.
--
-- line: the key of the queue. what, left, more: the values to return. ARGV[1]: the waiter's channel. ARGV[2]: since
-- when it waits, by its clock, in microseconds. This is used as far as it agrees with this server's clock. ARGV[3]:
-- the TTL of the queue from now on, in ms.

local t=redis.call('TIME')
local now=t[1]*1000000+t[2]
local since=math.max(now-600000000,math.min(now+1000000,tonumber(ARGV[2])))
redis.call('ZADD',line,string.format('%.0f',since),ARGV[1])
redis.call('PEXPIRE',line,ARGV[3])
return {what,left,redis.call('ZRANK',line,ARGV[1]),more}

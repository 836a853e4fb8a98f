-- The end of scripts that have a waiter stand in a line: {what, ms, rank}, and what else there is to say.
--
-- line: its key. what, left, more: what is said. ARGV[1]: the waiter's channel. ARGV[2]: since when it waits, by its
-- clock, in microseconds: as far as that agrees with this server's. ARGV[3]: how long the line lives from now on, in ms.

local t=redis.call('TIME')
local now=t[1]*1000000+t[2]
local since=math.max(now-600000000,math.min(now+1000000,tonumber(ARGV[2])))
redis.call('ZADD',line,string.format('%.0f',since),ARGV[1])
redis.call('PEXPIRE',line,ARGV[3])
return {what,left,redis.call('ZRANK',line,ARGV[1]),more}

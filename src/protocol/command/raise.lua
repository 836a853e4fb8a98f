-- Notes that a longer TTL is in use from now on. Does nothing if the server has no such memory any more.
--
-- KEYS[1]: the note. ARGV[1]: the TTL in milliseconds. ARGV[2]: the name of the memory.

local v=redis.call('GET',KEYS[1])
local id,generation,since,longest,life,more=
    string.match(v or '','^1 (%x+) (%d+) (%-?%d+) (%d+) (%x+)(.*)$')
if life==ARGV[2] and tonumber(longest)<tonumber(ARGV[1]) then
    generation=string.format('%.0f',generation+1)
    redis.call('SET',KEYS[1],table.concat({'1',id,generation,since,ARGV[1],life},' ')..more)
end
return 0

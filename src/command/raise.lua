-- Notes that a longer TTL is in use from now on. Does nothing if there is no note.
--
-- KEYS[1]: the note. ARGV[1]: the TTL in milliseconds.

local v=redis.call('GET',KEYS[1])
local begin,longest=string.match(v or '','^(%S+ %-?%d+ )(%d+)$')
if begin and tonumber(longest)<tonumber(ARGV[1]) then
    redis.call('SET',KEYS[1],begin..ARGV[1])
end
return 0

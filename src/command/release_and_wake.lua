-- Deletes the key if it has our token, and tells the first in line (wake.lua): 2 or 1. If it has not, or is not
-- there: 0.
--
-- KEYS[1]: the resource. KEYS[2]: its line. ARGV[1]: the token.

if redis.call('GET',KEYS[1])~=ARGV[1] then
    return 0
end
redis.call('DEL',KEYS[1])
local line=KEYS[2]
local told=1

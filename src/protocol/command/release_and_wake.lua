-- Deletes the key if it has our token, notifies the first waiter in the queue (wake.lua), and returns 2 or 1.
-- Returns 0 if the key does not have our token, or does not exist.
--
-- KEYS[1]: the resource. KEYS[2]: its wait queue. ARGV[1]: the token.

if redis.call('GET',KEYS[1])~=ARGV[1] then
    return 0
end
redis.call('DEL',KEYS[1])
local line=KEYS[2]
local told=1

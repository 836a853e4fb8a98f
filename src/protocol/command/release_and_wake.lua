-- Follows wake.lua. Deletes the key if it has our token, notifies the first waiter in the queue, and returns 2 or 1.
-- Returns 0 if the key does not have our token, or does not exist.
--
-- KEYS[1]: the resource. KEYS[2]: its wait queue. ARGV[1]: the token.

local call,key=redis.call,KEYS[1]
if call('GET',key)~=ARGV[1] then
    return 0
end
call('DEL',key)
return wake(KEYS[2],key,1)

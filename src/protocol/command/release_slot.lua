-- Follows wake.lua. Deletes a slot of a semaphore if it has our token. Then notifies the first of the clients that wait
-- for this slot, and the first of the clients that wait for any permit, and returns 2 or 1. Returns 0 if the slot does
-- not have our token, or does not exist.
--
-- KEYS[1]: the slot. KEYS[2]: its wait queue. KEYS[3]: the wait queue of the semaphore. ARGV[1]: the token.

local call,key=redis.call,KEYS[1]
if call('GET',key)~=ARGV[1] then
    return 0
end
call('DEL',key)
return math.max(wake(KEYS[2],key,1),wake(KEYS[3],key,1))

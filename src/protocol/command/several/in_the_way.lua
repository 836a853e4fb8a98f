-- The beginning of the scripts that look for the key that is in the way of a lock. in_the_way() finds the existing key
-- that lives longest. Returns its number, from 1, and its remaining time; 0 and -2: there is none. If keys end within a
-- millisecond of each other, the first of them counts. Keys that one script sets may end a millisecond apart, on one
-- server and not on another, and their waiters must be in the same wait queue on every server.
--
-- n: the number of keys.

local function in_the_way(n)
    local at,left=0,-2
    for i=1,n do
        local t=redis.call('PTTL',KEYS[i])
        if left~=-1 and (t==-1 or t>left+1) then
            at,left=i,t
        end
    end
    return at,left
end

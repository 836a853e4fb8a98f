-- The key that lives longest of those that are there, and for how long; of those that end within a millisecond, the
-- first. Keys that one script sets may end a millisecond apart, on one server and not on another, and who waits for them
-- is to stand in the same line everywhere.
-- n: how many keys there are.

local at,left=0,-2
for i=1,n do
    local t=redis.call('PTTL',KEYS[i])
    if left~=-1 and (t==-1 or t>left+1) then
        at,left=i,t
    end
end

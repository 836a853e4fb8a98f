-- The key that lives longest of those that are there, and for how long.
-- n: how many keys there are.

local at,left=0,-2
for i=1,n do
    local t=redis.call('PTTL',KEYS[i])
    if left~=-1 and (t==-1 or t>left) then
        at,left=i,t
    end
end

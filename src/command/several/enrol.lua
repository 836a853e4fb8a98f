-- Has a waiter stand in the line of the one of several resources that is in the way, and in no other of these lines; unless
-- nobody has any. Returns
--   {1, 0, 0, 0}      nobody has any: the waiter was not put in a line
--   {0, ms, rank, i}  the i-th has a value, and so long to live: the one that lives longest. So many stand before the waiter
--   {2, ms, rank, i}  the same, and readers have it
-- A rank of -1: the line of that one was not given, and the waiter stands in none.
--
-- Where the waiter was told that another is free, and that is free still, the next in that line is told.
--
-- KEYS: the resources, and the lines of some. ARGV[1..3]: as for stand.lua. ARGV[4]: how many resources there are.
-- Further ones: of which resource each line is, from 1.

local n=tonumber(ARGV[4])
if redis.call('EXISTS',unpack(KEYS,1,n))==0 then
    return {1,0,0,0}
end

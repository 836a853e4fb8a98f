-- Reads what this server knows of fencing tokens. Returns
--   {1, number, 0, 0}       the greatest number that it knows
--   {2, number, 0, seen}    the same, but its numbers are known by its clock alone
--   {0, number, ms, seen}   it has lost its numbers, and this is the greatest one that is left. This was first seen so
--                           many milliseconds ago
--   {3, 0, 0, 0}            the hash of the numbers has another type
-- `seen` is when the loss was first seen, in milliseconds of its clock. It names this loss.
--
-- KEYS[1]: the hash of the numbers. ARGV[1]: the name of this server's memory, as the client knows it. Hyphens: the
-- client does not know it, and only asks whether it may read the numbers.

local all=redis.pcall('HGETALL',KEYS[1])
if all.err then
    return all.err:find('WRONGTYPE') and {3,0,0,0} or all
end
local greatest,f=0,{}
for i=1,#all,2 do
    f[all[i]]=all[i+1]
    local is_number=all[i]=='base' or tonumber(all[i])
    local c=is_number and tonumber(string.match(all[i+1],'^%d+$')) or 0
    if c>greatest and c<=9007199254740991 then
        greatest=c
    end
end
if f.life==ARGV[1] or ARGV[1]=='----------------' then
    return f.clock and {2,greatest,0,tonumber(f.seen) or 0} or {1,greatest,0,0}
end
local t=redis.call('TIME')
local ms=t[1]*1000+math.floor(t[2]/1000)
local seen=tonumber(f.seen or ms+1)
if not seen or seen>ms then
    seen=ms
    redis.call('HSET',KEYS[1],'seen',string.format('%.0f',ms))
end
return {0,greatest,ms-seen,seen}

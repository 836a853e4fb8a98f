-- Restores the numbers of a server that has lost them, if its note is still the one that was seen when they were read.
-- Returns 1, or 0 if it did nothing.
--
-- The note names the memory, and `seen` names the loss. Without these checks, a late request would vouch for numbers
-- that were lost in the meantime: with the whole memory, or by themselves, if somebody has deleted the hash. So `seen`
-- stays until the numbers are known without the clock.
--
-- KEYS[1]: the hash of the numbers. KEYS[2]: the note. ARGV[1]: the generation of the note. ARGV[2]: the name of the
-- memory. ARGV[3]: the greatest number that was read. ARGV[4]: 0 if that is all that can be known. Otherwise the time on
-- the client's clock, in microseconds: the number is at least that, as far as this server's clock agrees. ARGV[5]: how
-- far it may be from this server's clock, in microseconds. ARGV[6]: 1 if others must not rely on these numbers, because
-- they are known by the clock alone. ARGV[7]: when the loss was first seen, as it was read.

local call=redis.call
local generation,life=string.match(call('GET',KEYS[2]) or '','^1 %x+ (%d+) %-?%d+ %d+ (%x+)')
if generation~=ARGV[1] or life~=ARGV[2] then
    return 0
end
local f=call('HMGET',KEYS[1],'base','life','clock','seen')
if f[4]~=ARGV[7] or f[2]==life and not f[3] then
    return 0
end
local base=math.max(tonumber(ARGV[3]),tonumber(string.match(f[1] or '','^%d+$') or 0))
if ARGV[4]~='0' then
    local t=call('TIME')
    local now=t[1]*1000000+t[2]
    if now>4503599627370496 then
        return 0
    end
    base=math.max(base,now-ARGV[5],math.min(now+ARGV[5],tonumber(ARGV[4])))
end
call('HSET',KEYS[1],'base',string.format('%.0f',base),'life',life)
if ARGV[6]=='1' then
    call('HSET',KEYS[1],'clock','1')
else
    call('HDEL',KEYS[1],'clock','seen')
end
return 1

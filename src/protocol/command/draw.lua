-- The beginning of the scripts that set keys and draw a fencing token. They call draw() once all keys are set. They
-- return
--   {-5, number}  the keys are set, and this number was drawn
--   {-3, number}  the same, but this server's numbers are known by its clock alone
--   {-2, ms}      the keys are set, but this server has lost its numbers, so none was drawn. This was first seen so
--                 many milliseconds ago
--   {-1, 0}       the hash of the numbers is damaged or at its end, and nothing was done
--   {-4, 0}       this server's clock is beyond 2112, and nothing was done
--
-- The time is read before the keys are set, because a clock beyond all reason must not count up the numbers of sound
-- servers, which have no other bound.
--
-- KEYS: the resources, and the hash of the numbers. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds. ARGV[3]: the
-- time on the client's clock, in microseconds. ARGV[4]: how far the number may be from this server's clock, in
-- microseconds. Then for each resource the name of its field. The last argument: the name of this server's memory, as
-- the client knows it. Hyphens: the client does not know it.

local call,n=redis.call,#KEYS-1
local fence,life=KEYS[n+1],ARGV[n+5]
local f=redis.pcall('HMGET',fence,'life','clock','seen','base',unpack(ARGV,5,n+4))
if f.err then
    return f.err:find('WRONGTYPE') and {-1,0} or f
end
local last=0
for i=4,n+4 do
    local c=tonumber(string.match(f[i] or '0','^%d+$'))
    if not c or c>=9007199254740991 then
        return {-1,0}
    end
    last=math.max(last,c)
end
local t=call('TIME')
local now=t[1]*1000000+t[2]
if now>4503599627370496 then
    return {-4,0}
end
local function draw()
    local known=life~='----------------'
    if known and f[1]~=life then
        local ms=math.floor(now/1000)
        local seen=tonumber(f[3] or ms+1)
        if not seen or seen>ms then
            seen=ms
            call('HSET',fence,'seen',string.format('%.0f',ms))
        end
        return {-2,ms-seen}
    end
    local v=math.max(now-ARGV[4],math.min(now+ARGV[4],tonumber(ARGV[3])),last+1)
    local text=string.format('%.0f',v)
    for i=1,n do
        call('HSET',fence,ARGV[4+i],text)
    end
    return {known and f[2] and -3 or -5,v}
end

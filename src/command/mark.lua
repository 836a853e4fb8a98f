-- Notes which server this memory belongs to, and since when. What this server itself has noted before stays.
-- Returns {since, longest, now}, in milliseconds of the server's clock: two as written, and the last as read.
--
-- KEYS[1]: the note. ARGV[1]: the server's run id. ARGV[2]: the longest TTL in use, in milliseconds. ARGV[3]: what
-- is known about the memory if the note is another server's, or missing:
--   lost   nothing from before now is known
--   fresh  there was nothing before; valid until ARGV[4], in milliseconds of the server's clock, and only
--          without a note
--   kept   all of the memory is known: the time in the note stays

local t=redis.call('TIME')
local now=t[1]*1000+math.floor(t[2]/1000)
local v=redis.call('GET',KEYS[1])
local id,since,longest=string.match(v or '','^(%S+) (%-?%d+) (%d+)$')
since=tonumber(since or now)
if id~=ARGV[1] then
    if not v and ARGV[3]=='fresh' and now<=tonumber(ARGV[4]) then
        since=-now
    elseif not id or ARGV[3]~='kept' then
        since=now
    end
end
longest=math.max(tonumber(longest or 0),tonumber(ARGV[2]))
redis.call('SET',KEYS[1],ARGV[1]..' '..string.format('%.0f %.0f',since,longest))
return {since,longest,now}

-- Replaces the server's note, if it is still what the client has judged. Returns {note, now}: what the server has for a
-- note by now, and its clock in milliseconds.
--
-- KEYS[1]: the note. ARGV[1]: what the client has judged: the first 256 bytes. ARGV[2]: the new note up to its time.
-- ARGV[3]: its time: a number of milliseconds, or
--   now    the time on the server's clock
--   fresh  the same below 0, which is the time of a server that is new. Only until ARGV[5], in milliseconds of the
--          server's clock, and only if the server shows that it never was a replica. Otherwise the same as `now`
-- ARGV[4]: the new note behind its time.
--
-- The numbers of fencing tokens (redlock:fence) belong to a memory as well. Those of a new server belong to the memory
-- that begins. Those of another memory are lost, and this is when that was seen. A user who draws no tokens need not
-- have the right to that key. So it is not named with the request.
--
-- A server that never was a replica has no previous replication id. But it also has none some time after its
-- promotion (`repl-backlog-ttl`). So its replication must not have begun, or have begun with its first byte. And it
-- must not have received anything from a primary, nor have been told to become a replica or a primary. (6.2 does not
-- count what it received.)

local call=redis.call
local t=call('TIME')
local now=string.format('%.0f',t[1]*1000+math.floor(t[2]/1000))
local v=call('GETRANGE',KEYS[1],0,255)
if v~=ARGV[1] then
    return {v,tonumber(now)}
end
local function told(section)
    local text=redis.pcall('INFO',section)
    return type(text)=='string' and text or ''
end
local since=ARGV[3]
if since=='now' then
    since=now
elseif since=='fresh' then
    local r=told('replication')
    local has=function(words) return string.find(r,words,1,true) end
    local is_new=has('master_replid2:'..string.rep('0',40)) and
        (has('master_repl_offset:0\r') or has('repl_backlog_first_byte_offset:1\r'))
    local s,c=told('stats'),told('commandstats')
    is_new=is_new and s~='' and (string.match(s,'total_net_repl_input_bytes:(%d+)') or '0')=='0'
    is_new=is_new and c~='' and not string.find(c,'cmdstat_replicaof:',1,true) and
        not string.find(c,'cmdstat_slaveof:',1,true)
    since=now
    if is_new and tonumber(now)<=tonumber(ARGV[5]) then
        since='-'..now
    end
end
v=ARGV[2]..' '..since..' '..ARGV[4]
call('SET',KEYS[1],v)
local life=string.match(ARGV[4],'^%d+ (%x+)')
local fence=string.gsub(KEYS[1],'guard$','fence')
if string.sub(since,1,1)=='-' and ARGV[3]=='fresh' then
    redis.pcall('HSET',fence,'life',life)
elseif since==now then
    redis.pcall('HSET',fence,'seen',now)
end
return {v,tonumber(now)}

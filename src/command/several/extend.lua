-- Gives all keys at least the TTL if all have our token; without a TTL it only looks. Never shortens one, and never
-- sets one. Returns what it found, how long a key had to live before, in milliseconds as PTTL tells it, and which:
--   {0, -2, i}  none has another value, and the i-th is not there
--   {1, ms, 0}  all have our token, and the first to end has so long
--   {2, ms, i}  the i-th has another value; nothing is changed
--
-- KEYS: the resources. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds, or nothing.

local call,token,ttl=redis.call,ARGV[1],tonumber(ARGV[2])
local values=call('MGET',unpack(KEYS))
local gone=0
for i=1,#KEYS do
    local v=values[i]
    if v~=token then
        if v then
            return {2,call('PTTL',KEYS[i]),i}
        end
        if gone==0 then
            gone=i
        end
    end
end
if gone>0 then
    return {0,-2,gone}
end
local least=-1
for i=1,#KEYS do
    local key=KEYS[i]
    local t=call('PTTL',key)
    if t>=0 and (least<0 or t<least) then
        least=t
    end
    if ttl and t<ttl then
        call('PEXPIRE',key,ARGV[2])
    end
end
return {1,least,0}

-- Gives all keys at least the TTL if all have our token. Without a TTL, it only looks. Never shortens a TTL, and
-- never sets a key. Returns what it found, the remaining time of a key before the call, as its PTTL in
-- milliseconds, and which key:
--   {0, -2, i}  no key has another value, and the i-th is missing
--   {1, ms, 0}  all have our token, and this is the shortest remaining time
--   {2, ms, i}  the i-th has another value; nothing was changed
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

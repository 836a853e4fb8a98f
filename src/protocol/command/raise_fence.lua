-- Raises the number of each resource to at least a fencing token, if all locks are ours, and returns 1. Returns
--   0  a lock is not ours
--   2  the hash of the numbers is damaged
--   3  this server has lost its numbers
--
-- KEYS: the resources, and the hash of the numbers. ARGV[1]: the token. ARGV[2]: the fencing token. Then for each
-- resource the name of its field. The last argument: the name of this server's memory, as the client knows it. Hyphens:
-- the client does not know it.

local n=#KEYS-1
for i=1,n do
    if redis.call('GET',KEYS[i])~=ARGV[1] then
        return 0
    end
end
local f=redis.pcall('HMGET',KEYS[n+1],'life',unpack(ARGV,3,n+2))
if f.err then
    return f.err:find('WRONGTYPE') and 2 or f
end
local life=ARGV[n+3]
if life~='----------------' and f[1]~=life then
    return 3
end
local behind={}
for i=1,n do
    local c=tonumber(string.match(f[i+1] or '0','^%d+$'))
    if not c then
        return 2
    end
    if c<tonumber(ARGV[2]) then
        behind[#behind+1]=ARGV[i+2]
        behind[#behind+1]=ARGV[2]
    end
end
if #behind>0 then
    redis.call('HSET',KEYS[n+1],unpack(behind))
end
return 1

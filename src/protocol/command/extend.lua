-- Gives the key at least the TTL if it has our token. Never shortens its TTL, and never sets the key. Returns what
-- it found, and the remaining time before the call, as the key's PTTL in milliseconds:
--   {0, -2}  there is no key
--   {1, ms}  it has our token
--   {2, ms}  it has another value, and is left alone
--
-- KEYS[1]: the resource. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds.

local v=redis.call('GET',KEYS[1])
if not v then
    return {0,-2}
end
local t=redis.call('PTTL',KEYS[1])
if v~=ARGV[1] then
    return {2,t}
end
if t<tonumber(ARGV[2]) then
    redis.call('PEXPIRE',KEYS[1],ARGV[2])
end
return {1,t}

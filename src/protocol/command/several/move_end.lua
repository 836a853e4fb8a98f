local what=0
if redis.pcall('GET',KEYS[at])=='redlock:shared' then
    what=2
end
if not line then
    return {what,left,-1,at}
end
local more=at

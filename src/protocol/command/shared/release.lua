-- Removes us from the readers of a resource. The last reader deletes the resource. If the lock is ours and
-- exclusive here, deletes it. Returns
--   1  it was ours
--   2  it was ours, nobody holds the resource now, and a waiter was notified (wake.lua)
--   0  it was not ours, or it had expired
--
-- KEYS[1]: the resource. KEYS[2]: its readers. ARGV[1]: the token. ARGV[2]: the maximum TTL of any lock, in
-- milliseconds.

local call,key,set,token=redis.call,KEYS[1],KEYS[2],ARGV[1]
local v=call('GET',key)
local ours=1
if v=='redlock:shared' then
    -- The last two readers, each with its end.
    local all=call('ZRANGE',set,'-2','-1','WITHSCORES')
    local n=#all
    local s,last=all[n],all[n-2]
    local top=all[n-1]==token
    if not top then
        s,last=call('ZSCORE',set,token),s
        if not s then
            return 0
        end
    end
    local t=call('TIME')
    local now=t[1]*1000+math.floor(t[2]/1000)
    if s-now<0 then
        ours=0
    end
    if last and last-now>0 then
        call('ZREM',set,token)
        if top then
            last=string.format('%.0f',math.min(last,now+ARGV[2]))
            call('PEXPIREAT',key,last)
            call('PEXPIREAT',set,last)
        end
        return ours
    end
    call('DEL',key,set)
elseif v==token then
    call('DEL',key)
else
    return 0
end

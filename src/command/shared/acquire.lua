-- Joins the readers of a resource. Never shortens what we have there. Returns
--   1        we are one of them
--   {0, ms}  the resource has another value, and so long to live, in milliseconds as PTTL tells it
--   {2, ms}  a writer waits, and readers wait for it: so long, unless it says so again
--   {3, 0}   something else stands where the readers are to stand, and nothing was done
--
-- KEYS[1]: the resource. KEYS[2]: its readers, each with the end of its time by this server's clock.
-- KEYS[3]: whether a writer waits. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds. ARGV[3]: for how long a
-- writer says that it waits; what stands there for longer is none.
--
-- The resource lives until the last of the readers ends, and so do they: what has longer to live than we are to have
-- is left alone, for others have that. Between the commands that change something no error can come, but for what this
-- user may not do: then what nobody had before is free again.
--
-- A time is made a text once: for each number that is passed the server makes one, which takes it as long as a command.

local call,key,set=redis.call,KEYS[1],KEYS[2]
local v=redis.pcall('GET',key)
if v and v~='redlock:shared' then
    if type(v)=='table' and not v.err:find('WRONGTYPE') then
        return v
    end
    return {0,call('PTTL',key)}
end
local i=call('PTTL',KEYS[3])
if i>=0 and i<=tonumber(ARGV[3]) then
    return {2,i}
end
local n=redis.pcall('ZCARD',set)
if type(n)=='table' then
    return n.err:find('WRONGTYPE') and {3,0} or n
end
-- Before the clock is read: so no end is taken for an earlier one than ours that is later.
local left=v and call('PTTL',key)
local t=call('TIME')
local till=string.format('%.0f',t[1]*1000+math.floor(t[2]/1000)+ARGV[2])
local done,why=pcall(function()
    if v then
        call('ZADD',set,'GT',till,ARGV[1])
        -- Those whose time was over before this second began.
        call('ZREMRANGEBYSCORE',set,'-inf','('..t[1]..'000')
        if n>0 and (left<0 or left>tonumber(ARGV[2])) then
            return
        end
        call('PEXPIREAT',key,till)
    else
        call('SET',key,'redlock:shared','PXAT',till)
        if n>0 then
            call('DEL',set)
        end
        call('ZADD',set,till,ARGV[1])
    end
    call('PEXPIREAT',set,till)
end)
if not done then
    if not v then
        redis.pcall('DEL',key,set)
    end
    error(why,0)
end
return 1

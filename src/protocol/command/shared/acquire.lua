-- Adds us to the readers of a resource. Never shortens the time that we hold it. Returns
--   1        we are a reader
--   {0, ms}  the resource has another value, and this is its PTTL in milliseconds
--   {2, ms}  a writer waits, so readers must wait; ms: how long its announcement lasts, unless the writer
--            repeats it
--   {3, 0}   the key of the readers has another type, and nothing was done
--
-- KEYS[1]: the resource. KEYS[2]: its readers, each with its end by this server's clock. KEYS[3]: the announcement
-- of a waiting writer. ARGV[1]: the token. ARGV[2]: the TTL in milliseconds. ARGV[3]: the TTL of a writer's
-- announcement, in milliseconds. A key with a longer TTL is not an announcement.
--
-- The resource and its set of readers live until the end of the last reader. If they have longer to live than our
-- TTL, their end stays, because other readers need it. Between the commands that change something, the only
-- possible error is that this user may not run a command. In that case, a resource that nobody held before becomes
-- free again.
--
-- Each time is converted to text only once. For every number that is passed as an argument, the server makes a
-- text, which takes it as long as a command.

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
-- Read before the clock is read. Otherwise an end later than ours could be mistaken for an earlier one.
local left=v and call('PTTL',key)
local t=call('TIME')
local till=string.format('%.0f',t[1]*1000+math.floor(t[2]/1000)+ARGV[2])
local done,why=pcall(function()
    if v then
        call('ZADD',set,'GT',till,ARGV[1])
        -- Removes readers that expired before this second began.
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

-- Returns the previous replication id of the server, which shows whether it was promoted; or `replica`. Nothing if this
-- user may not ask.

local told=redis.pcall('INFO','replication')
if type(told)~='string' then
    return false
end
return string.find(told,'role:slave') and 'replica' or string.match(told,'master_replid2:(%x+)')

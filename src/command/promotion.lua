-- Returns the previous replication id of the server, which shows whether it was promoted. Nothing if this user may not
-- ask.

local told=redis.pcall('INFO','replication')
return type(told)=='string' and string.match(told,'master_replid2:(%x+)')

-- The end of the scripts that take locks: what is in the way (in_the_way.lua).

return {at,left}

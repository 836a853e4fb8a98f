-- The end of the scripts that acquire locks: returns the key that is in the way (in_the_way.lua).

return {at,left}

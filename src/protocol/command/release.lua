-- Deletes the key if it has our token, and returns 1. Returns 0 if it does not have our token, or does not exist.
--
-- KEYS[1]: the resource. ARGV[1]: the token.

if redis.call('GET',KEYS[1])==ARGV[1] then
    return redis.call('DEL',KEYS[1])
end
return 0

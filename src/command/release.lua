-- Deletes the key if it has our token: 1. If it has not, or is not there: 0.
--
-- KEYS[1]: the resource. ARGV[1]: the token.

if redis.call('GET',KEYS[1])==ARGV[1] then
    return redis.call('DEL',KEYS[1])
end
return 0

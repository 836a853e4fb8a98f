-- Takes a waiter out of the line: 0. If it was told meanwhile that nobody has the resource, and nobody has it still,
-- the next in line is told instead (wake.lua): 2 or 1.
--
-- KEYS[1]: the resource. KEYS[2]: its line. ARGV[1]: the waiter's channel.

if redis.call('ZREM',KEYS[2],ARGV[1])==1 or redis.call('EXISTS',KEYS[1])==1 then
    return 0
end

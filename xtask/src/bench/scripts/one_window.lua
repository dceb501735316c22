-- A sliding window of two counters, in the order of calls that the Upstash rate limiter makes.
local current_key, previous_key = KEYS[1], KEYS[2]
local limit, now, window, cost = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]

local current = redis.call("GET", current_key)
if current == false then current = 0 end
local previous = redis.call("GET", previous_key)
if previous == false then previous = 0 end

previous = math.floor((1 - (now % window) / window) * previous)
if previous + current >= limit then return -1 end

local used = redis.call("INCRBY", current_key, cost)
if used == tonumber(cost) then
  redis.call("PEXPIRE", current_key, window * 2 + 1000)
end
return limit - (used + previous)

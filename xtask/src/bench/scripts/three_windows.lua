-- Three sliding windows of two counters each: charges all or none.
local now, cost = ARGV[1], ARGV[2]
local count = #KEYS / 2
local remaining = {}

for i = 1, count do
  local limit, window = tonumber(ARGV[2 * i + 1]), ARGV[2 * i + 2]
  local current = redis.call("GET", KEYS[2 * i - 1])
  if current == false then current = 0 end
  local previous = redis.call("GET", KEYS[2 * i])
  if previous == false then previous = 0 end
  previous = math.floor((1 - (now % window) / window) * previous)
  if previous + current + cost > limit then return -1 end
  remaining[i] = limit - previous
end

local least
for i = 1, count do
  local used = redis.call("INCRBY", KEYS[2 * i - 1], cost)
  if used == tonumber(cost) then
    redis.call("PEXPIRE", KEYS[2 * i - 1], ARGV[2 * i + 2] * 2 + 1000)
  end
  local left = remaining[i] - used
  if least == nil or left < least then least = left end
end
return least

-- Removes rows that have expired.
-- KEYS: the rows, their index, their keys, the ids of all secrets. ARGV: how many rows at most; the rows' id if it
-- may be forgotten once there are none left, else ''.
-- Answers how many went.
if ARGV[2] ~= '' and redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('SREM', KEYS[4], ARGV[2])
end
local time = redis.call('TIME')
local now_ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now_ms, 'LIMIT', 0, ARGV[1])
for first = 1, #due, 4000 do
  local last = math.min(first + 3999, #due)
  redis.call('HDEL', KEYS[1], unpack(due, first, last))
  redis.call('ZREM', KEYS[2], unpack(due, first, last))
  redis.call('ZREM', KEYS[3], unpack(due, first, last))
end
return #due

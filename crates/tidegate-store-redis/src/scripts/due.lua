-- Finds rows that have expired.
-- KEYS: an index, the ids of all secrets. ARGV: how many rows at most; the index's id if it may be forgotten
-- once it has no rows left, else ''.
-- Answers the rows' keys.
if ARGV[2] ~= '' and redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('SREM', KEYS[2], ARGV[2])
end
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now_ms), 'LIMIT', 0, ARGV[1])

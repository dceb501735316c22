-- Removes those of some rows that have expired.
-- KEYS: their index, their keys, the rows. Answers how many went.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local removed = 0
for key = 3, #KEYS do
  local member = string.sub(KEYS[key], -24)
  local expires_at_ms = redis.call('ZSCORE', KEYS[1], member)
  if expires_at_ms and tonumber(expires_at_ms) <= now_ms then
    redis.call('ZREM', KEYS[1], member)
    redis.call('ZREM', KEYS[2], member)
    redis.call('DEL', KEYS[key])
    removed = removed + 1
  end
end
return removed

-- Writes all changes, if every row is still as it was read; otherwise none.
-- KEYS: the index, the turn, the rows. ARGV: who asks; the version that each row was read with ('' for none);
-- and for each change the row's number, its new expiry in ms ('' if it keeps the one it has) and its bytes
-- ('' to delete it).
-- Answers 1, or 0 for a conflict.
local turn = redis.call('GET', KEYS[2])
if turn and turn ~= ARGV[1] then
  return 0
end
local rows = #KEYS - 2
for row = 1, rows do
  if redis.call('GETRANGE', KEYS[row + 2], 0, 7) ~= ARGV[row + 1] then
    return 0
  end
end
for at = rows + 2, #ARGV, 3 do
  local key, expires_at_ms, bytes = KEYS[ARGV[at] + 2], ARGV[at + 1], ARGV[at + 2]
  local member = string.sub(key, -24)
  if bytes == '' then
    redis.call('ZREM', KEYS[1], member)
    redis.call('DEL', key)
  elseif expires_at_ms == '' then
    redis.call('SET', key, bytes, 'KEEPTTL')
  else
    redis.call('ZADD', KEYS[1], expires_at_ms, member)
    redis.call('SET', key, bytes, 'PXAT', expires_at_ms)
  end
end
if turn then
  redis.call('DEL', KEYS[2])
end
return 1

-- Writes all changes, if every row is still as it was read; otherwise none.
-- KEYS: the index, the keys, the turn, the rows. ARGV: who asks; the version that each row was read with ('' for
-- none); and for each change the row's number, its new expiry in ms ('' if it keeps the one it has) and its
-- bytes ('' to delete it).
-- Answers 1, or 0 for a conflict.
local turn = redis.call('GET', KEYS[3])
if turn and turn ~= ARGV[1] then
  return 0
end
local rows = #KEYS - 3
-- In large steps, of as many as a call can take: a call a row costs more than the row.
for first = 1, rows, 4000 do
  local found = redis.call('MGET', unpack(KEYS, first + 3, math.min(first + 4002, #KEYS)))
  for at = 1, #found do
    -- MGET takes what is no string for nothing; GETRANGE fails.
    local version = found[at] and string.sub(found[at], 1, 8) or redis.call('GETRANGE', KEYS[first + 2 + at], 0, 7)
    if version ~= ARGV[first + at] then
      return 0
    end
  end
end
local index, keys = {}, {}
for at = rows + 2, #ARGV, 3 do
  local row, expires_at_ms = ARGV[at], ARGV[at + 1]
  if expires_at_ms ~= '' then
    local member = string.sub(KEYS[row + 3], -24)
    index[#index + 1] = expires_at_ms
    index[#index + 1] = member
    if ARGV[row + 1] == '' then
      keys[#keys + 1] = 0
      keys[#keys + 1] = member
    end
  end
end
for first = 1, #index, 4000 do
  redis.call('ZADD', KEYS[1], unpack(index, first, math.min(first + 3999, #index)))
end
for first = 1, #keys, 4000 do
  redis.call('ZADD', KEYS[2], unpack(keys, first, math.min(first + 3999, #keys)))
end
for at = rows + 2, #ARGV, 3 do
  local key, expires_at_ms, bytes = KEYS[ARGV[at] + 3], ARGV[at + 1], ARGV[at + 2]
  if bytes == '' then
    local member = string.sub(key, -24)
    redis.call('ZREM', KEYS[1], member)
    redis.call('ZREM', KEYS[2], member)
    redis.call('DEL', key)
  elseif expires_at_ms == '' then
    redis.call('SET', key, bytes, 'KEEPTTL')
  else
    redis.call('SET', key, bytes, 'PXAT', expires_at_ms)
  end
end
if turn then
  redis.call('DEL', KEYS[3])
end
return 1

-- Writes all changes, if every row is still as it was read; otherwise none.
-- KEYS: the rows, the index, the keys, the turn.
-- ARGV: who asks; how many rows were read, are written, get an end, are new, and are removed; the versions of those
-- read, one after the other, with zeros for none; then for each of the five kinds in turn: the keys, the keys and
-- bytes, the ends and keys, zeros and the keys, the keys.
-- Answers 1, or 0 for a conflict.
local turn = redis.call('GET', KEYS[4])
if turn and turn ~= ARGV[1] then
  return 0
end
local at = 8
-- Calls a command with the next arguments, in large steps of as many as a call can take.
local function call(command, key, count)
  for first = at, at + count - 1, 4000 do
    redis.call(command, key, unpack(ARGV, first, math.min(first + 3999, at + count - 1)))
  end
end
local read, none = tonumber(ARGV[2]), string.rep('\0', 8)
for first = 0, read - 1, 4000 do
  local found = redis.call('HMGET', KEYS[1], unpack(ARGV, at + first, at + math.min(first + 3999, read - 1)))
  for row = 1, #found do
    local version = found[row] and string.sub(found[row], 1, 8) or none
    local ends = 8 * (first + row)
    if version ~= string.sub(ARGV[7], ends - 7, ends) then
      return 0
    end
  end
end
at = at + read
for kind, command in ipairs({ 'HSET', 'ZADD', 'ZADD' }) do
  local count = 2 * ARGV[2 + kind]
  call(command, KEYS[kind], count)
  at = at + count
end
for kind, command in ipairs({ 'HDEL', 'ZREM', 'ZREM' }) do
  call(command, KEYS[kind], tonumber(ARGV[6]))
end
if turn then
  redis.call('DEL', KEYS[4])
end
return 1

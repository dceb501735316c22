-- Reads rows and the clock at one instant.
-- KEYS: the index, the keys, the turn, the rows. ARGV: who asks; for how many ms it wants the turn (0: not at all).
-- Answers the clock in ms, how many rows the index has, and the rows; nothing while another has the turn.
local turn = redis.call('GET', KEYS[3])
if turn and turn ~= ARGV[1] then
  return false
end
if ARGV[2] ~= '0' then
  redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[2])
end
local time = redis.call('TIME')
-- In large steps, of as many as a call can take: a call a row costs more than the row.
local rows = {}
for first = 4, #KEYS, 4000 do
  local found = redis.call('MGET', unpack(KEYS, first, math.min(first + 3999, #KEYS)))
  for at = 1, #found do
    -- MGET takes what is no string for nothing; GET fails.
    rows[first - 4 + at] = found[at] or redis.call('GET', KEYS[first - 1 + at])
  end
end
return { time[1] * 1000 + math.floor(time[2] / 1000), redis.call('ZCARD', KEYS[1]), rows }

-- KEYS: rows. Answers for each whether it is there.
local living = {}
for key = 1, #KEYS do
  living[key] = redis.call('EXISTS', KEYS[key])
end
return living

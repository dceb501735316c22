-- Notes a secret's id. KEYS: the ids. ARGV: the id. Answers all ids.
redis.call('SADD', KEYS[1], ARGV[1])
return redis.call('SMEMBERS', KEYS[1])

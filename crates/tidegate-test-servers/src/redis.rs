//! redis.

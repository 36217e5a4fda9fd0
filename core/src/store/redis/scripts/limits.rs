//! Scripts of rates and of requests at once.

/// Lets a request through, or gives the time to wait, in microseconds: the generic cell rate algorithm, by the store's
/// clock. A time further away than the rate allows was written by a clock that was ahead.
pub(in crate::store::redis) const RATE: &str = "local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local apart, room, client = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
if not redis.call('ZSCORE', KEYS[1], client) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then client = '' end
local due = math.max(tonumber(redis.call('ZSCORE', KEYS[1], client) or '0'), now)
due = math.min(due, now + room + apart)
if due - now > room then return due - now - room end
redis.call('ZADD', KEYS[1], string.format('%.0f', due + apart), client)
redis.call('PEXPIRE', KEYS[1], math.ceil((room + apart) / 1000))
return 0";

/// Counts a request that runs, if there is room for it and for those that have waited for longer in other processes. With a
/// `1` it waits from now on.
pub(in crate::store::redis) const ENTER: &str = "local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
for _, gone in ipairs(redis.call('ZRANGE', KEYS[3], '-inf', now, 'BYSCORE')) do
  redis.call('ZREM', KEYS[2], gone)
  redis.call('ZREM', KEYS[3], gone)
end
local before = redis.call('ZRANK', KEYS[2], ARGV[3]) or redis.call('ZCARD', KEYS[2])
if tonumber(ARGV[1]) - redis.call('ZCARD', KEYS[1]) > before then
  redis.call('ZREM', KEYS[2], ARGV[3])
  redis.call('ZREM', KEYS[3], ARGV[3])
  redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
if ARGV[4] == '1' then
  redis.call('ZADD', KEYS[2], 'NX', now, ARGV[3])
  redis.call('ZADD', KEYS[3], now + ARGV[5], ARGV[3])
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
  redis.call('PEXPIRE', KEYS[3], ARGV[5])
end
return 0";

/// Counts a request no more, nor that it waits.
pub(in crate::store::redis) const LEAVE: &str = "for i = 1, 3 do redis.call('ZREM', KEYS[i], ARGV[1]) end
return 1";

/// Counts requests that run for longer, also those that the store has lost.
pub(in crate::store::redis) const RENEW: &str = "local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1";

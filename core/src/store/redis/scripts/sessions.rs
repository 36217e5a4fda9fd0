//! Scripts of sessions.

/// Gives nothing, the version if it is known already, or everything; and lets it live on.
pub(in crate::store::redis) const LOOK: &str = "local version = redis.call('HGET', KEYS[1], 'v')
if not version then return false end
if version == '0' then return version end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
if version == ARGV[2] then return version end
return redis.call('HGETALL', KEYS[1])";

/// Lets sessions live on, but for those that have ended.
pub(in crate::store::redis) const TOUCH: &str = "for _, key in ipairs(KEYS) do
  if redis.call('HGET', key, 'v') ~= '0' then redis.call('PEXPIRE', key, ARGV[1]) end
end
return 1";

/// Sets and removes fields of a session that is there, and tells the other processes. The version of a new one is the
/// store's time, so that it is greater than that of one that was lost. One that has ended does not begin anew.
pub(in crate::store::redis) const TELL: &str = "local version = redis.call('HGET', KEYS[1], 'v')
if version == '0' or (not version and ARGV[4] ~= 'new') then return 0 end
local i = 6
while ARGV[i] do
  if ARGV[i] == '+' then
    redis.call('HSET', KEYS[1], ARGV[i + 1], ARGV[i + 2])
    i = i + 3
  else
    redis.call('HDEL', KEYS[1], ARGV[i + 1])
    i = i + 2
  end
end
if ARGV[4] == 'new' then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('HSET', KEYS[1], 'v', string.format('%.0f', math.max(now, tonumber(version or '0'))))
else
  redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[5], '*', 'n', ARGV[2], 'session', ARGV[3])
  redis.call('PEXPIRE', KEYS[2], 604800000)
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return redis.call('HINCRBY', KEYS[1], 'v', 1)";

/// Ends a session with its tasks, and tells the other processes.
pub(in crate::store::redis) const END: &str = "for _, task in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do
  redis.call('DEL', ARGV[5] .. task .. ARGV[6])
end
redis.call('DEL', KEYS[1], KEYS[3], KEYS[4])
redis.call('HSET', KEYS[1], 'v', '0')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[4], '*', 'n', ARGV[2], 'session', ARGV[3])
redis.call('PEXPIRE', KEYS[2], 604800000)
return 1";

/// Says whether nobody has used a session for so long, of the time that it lives.
pub(in crate::store::redis) const UNUSED: &str = "local left = redis.call('PTTL', KEYS[1])
if left < 0 or ARGV[2] - left + 1000 < tonumber(ARGV[1]) then return 0 end
return 1";

/// Puts a message into the inbox of the process that has a session's stream, or that takes up what has none, if that is the
/// one that is named, else among those that wait. 0: it is another now. 2: there is no room. 3: it is the sender.
pub(in crate::store::redis) const PASS: &str = "if (redis.call('HGET', KEYS[1], 'v') or '0') == '0' then return 1 end
local holder = redis.call('HGET', KEYS[1], 'n') or '0'
if holder == '0' or holder == ARGV[2] then
  local up = redis.call('HGET', KEYS[1], 'u') or '0'
  holder = '0'
  if ARGV[10] == '1' then
    holder = up
  elseif up == ARGV[2] then
    redis.call('HDEL', KEYS[1], 'u')
  end
end
if holder ~= ARGV[1] then return 0 end
if holder ~= '0' and holder == ARGV[2] then return 3 end
if redis.call('EXISTS', KEYS[3]) == 1 then
  if redis.call('XLEN', KEYS[4]) >= tonumber(ARGV[3]) then return 2 end
  redis.call('XADD', KEYS[4], '*', 'session', ARGV[5], 'to', ARGV[6])
  redis.call('PEXPIRE', KEYS[4], ARGV[4])
  return 1
end
if ARGV[9] == '0' then return 1 end
redis.call('RPUSH', KEYS[2], ARGV[6])
redis.call('LTRIM', KEYS[2], ARGV[8], -1)
redis.call('PEXPIRE', KEYS[2], ARGV[7])
return 1";

/// A process takes up what finds no stream. Gives what waits.
pub(in crate::store::redis) const TAKE_UP: &str =
    "if (redis.call('HGET', KEYS[1], 'v') or '0') == '0' then return {} end
redis.call('HSET', KEYS[1], 'u', ARGV[1])
local waiting = redis.call('LRANGE', KEYS[2], 0, -1)
if #waiting > 0 then redis.call('DEL', KEYS[2]) end
return waiting";

/// A process has the standalone stream now. Gives the place up to which the client knows all changes, and what waits.
pub(in crate::store::redis) const OPEN: &str =
    "if (redis.call('HGET', KEYS[1], 'v') or '0') == '0' then return {'', {}, 0} end
local at = redis.call('HGET', KEYS[1], 'at')
local other = redis.call('HGET', KEYS[1], 'n')
if other and other ~= ARGV[1] then
  redis.call('HINCRBY', KEYS[1], 'v', 1)
  redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[5], '*', 'n', ARGV[3], 'session', ARGV[4])
  redis.call('PEXPIRE', KEYS[3], 604800000)
end
redis.call('HSET', KEYS[1], 'n', ARGV[1], 'at', ARGV[2])
local waiting = redis.call('LRANGE', KEYS[2], 0, -1)
redis.call('DEL', KEYS[2])
return {at or '', waiting, redis.call('HINCRBY', KEYS[1], 'g', 1)}";

/// It has not any more.
pub(in crate::store::redis) const CLOSE: &str = "if redis.call('HGET', KEYS[1], 'g') == ARGV[1] then
  redis.call('HDEL', KEYS[1], 'n')
  if ARGV[5] then redis.call('HSET', KEYS[1], 'at', ARGV[5]) end
  redis.call('HINCRBY', KEYS[1], 'v', 1)
  redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[4], '*', 'n', ARGV[2], 'session', ARGV[3])
  redis.call('PEXPIRE', KEYS[2], 604800000)
end
return 1";

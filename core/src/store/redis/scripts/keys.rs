//! Scripts of the keys of request states.

/// Gives the time in milliseconds and what is kept, which lives on.
pub(in crate::store::redis) const READ: &str = "local t = redis.call('TIME')
local kept = redis.call('GET', KEYS[1])
if kept then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return {t[1] * 1000 + math.floor(t[2] / 1000), kept or ''}";

/// Writes, if what is kept is still what the writer knows. Gives what is kept then.
pub(in crate::store::redis) const SWAP: &str = "local kept = redis.call('GET', KEYS[1]) or ''
if kept ~= ARGV[1] then return kept end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return ARGV[2]";

//! The script that tells all processes a change.

/// Writes changes, unless they or later ones of their process are there: one that was not answered is asked again, and the
/// store may do both, in any order.
pub(in crate::store::redis) const PUBLISH: &str =
    "if tonumber(redis.call('GET', KEYS[2]) or '0') >= tonumber(ARGV[1]) then return 0 end
local i = 5
while ARGV[i] do
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[3], '*', 'n', ARGV[i], ARGV[i + 1], ARGV[i + 2], 'by', ARGV[i + 3])
  i = i + 4
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 1";

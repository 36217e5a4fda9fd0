//! Scripts of processes and their inboxes.

/// Takes the number if nobody else has it. 2: nobody had it.
pub(in crate::store::redis) const TAKE: &str = "local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
-- A full store lets a key live on, and takes none.
if owner then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 2";

/// Gives it back.
pub(in crate::store::redis) const LEAVE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1], KEYS[2]) end
return 0";

/// Puts a message into the inbox of a process. 0: it is not there, and has to be, or enough waits for such ones. 2: there is
/// no room.
pub(in crate::store::redis) const SEND: &str = "if redis.call('EXISTS', KEYS[1]) == 0 then
  if ARGV[6] == '1' then return 0 end
  local size = #ARGV[4] + 1024
  local sent = redis.call('INCRBY', KEYS[3], size)
  if sent == size then redis.call('PEXPIRE', KEYS[3], ARGV[2]) end
  if sent > tonumber(ARGV[7]) then return 0 end
end
if redis.call('XLEN', KEYS[2]) >= tonumber(ARGV[1]) then return 2 end
redis.call('XADD', KEYS[2], '*', 'session', ARGV[3], ARGV[5], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1";

/// Asks first whether the stream of a client of HTTP+SSE is another process's, and this owner's. 3: it is not.
pub(in crate::store::redis) const IS_PAIR: &str = "if redis.call('HGET', KEYS[4], 'o') ~= ARGV[8] then return 3 end
";

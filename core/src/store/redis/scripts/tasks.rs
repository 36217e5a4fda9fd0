//! Scripts of tasks.

/// Functions of the scripts about tasks. Arguments: the beginning and the end of keys that name processes, the room in an
/// inbox, its life, the grace, the time as text, and the message and the outcome of a task that failed with its process.
pub(in crate::store::redis) const COMMON: &str =
    "local function place(kind, number) return ARGV[1] .. kind .. ':' .. number .. ARGV[2] end
local function over(status) return status == 'completed' or status == 'failed' or status == 'cancelled' end
local function send(number, room, name, ...)
  if redis.call('EXISTS', place('node', number)) == 0 then return 0 end
  local inbox = place('inbox', number)
  if redis.call('XLEN', inbox) >= room then return 2 end
  redis.call('XADD', inbox, '*', 'task', name, ...)
  redis.call('PEXPIRE', inbox, ARGV[4])
  return 1
end
-- Half of an inbox is left to what nobody looks for later.
local function tell(key, name)
  local room = math.floor(tonumber(ARGV[3]) / 2)
  for number in string.gmatch(redis.call('HGET', key, 'w') or '', '%d+') do send(number, room, name) end
end
local function lives(key)
  local of = redis.call('HMGET', key, 'n', 'p')
  return redis.call('GET', place('node', of[1])) == of[2]
end
-- 0: it goes on. 1: it has failed now.
local function judge(key, name)
  if over(redis.call('HGET', key, 's')) then return 0 end
  local missed = redis.call('HGET', key, 'f')
  if lives(key) then
    if missed then redis.call('HDEL', key, 'f') end
    return 0
  end
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if not missed then redis.pcall('HSET', key, 'f', string.format('%.0f', now)) return 0 end
  if now - tonumber(missed) < tonumber(ARGV[5]) then return 0 end
  local done = redis.pcall('HSET', key, 's', 'failed', 'u', ARGV[6], 'm', ARGV[7], 'x', ARGV[8])
  if type(done) == 'table' then return 0 end
  redis.call('HDEL', key, 'q')
  tell(key, name)
  return 1
end
";

/// Writes a task. An end stays, only the process that works on it writes, and what is older changes nothing. 0: it is
/// known. 1: it is written. 2: it is over, as what follows says. 3: it is not there, and is not to be. 4: it is another's.
pub(in crate::store::redis) const PUT: &str =
    "local name, ttl, process, number, version = ARGV[9], ARGV[10], ARGV[11], ARGV[12], ARGV[13]
local was = redis.call('HMGET', KEYS[1], 's', 'p', 'v')
if was[1] then
  if over(was[1]) then return {2, was[1]} end
  if was[2] ~= process then return {4, was[1]} end
  if tonumber(was[3]) >= tonumber(version) then return {0, was[1]} end
else
  if ARGV[14] ~= '1' then return {3, ''} end
  if KEYS[2] ~= KEYS[1] and redis.call('HGET', KEYS[3], 'v') == '0' then return {3, ''} end
end
local set, gone = {'p', process, 'n', number, 'v', version}, {'f'}
for i = 18, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    gone[#gone + 1] = ARGV[i]
  else
    set[#set + 1] = ARGV[i]
    set[#set + 1] = ARGV[i + 1]
  end
end
redis.call('HSET', KEYS[1], unpack(set))
redis.call('PEXPIRE', KEYS[1], ttl)
if was[1] then
  redis.call('HDEL', KEYS[1], unpack(gone))
  tell(KEYS[1], name)
elseif KEYS[2] ~= KEYS[1] then
  local time = redis.call('TIME')
  local at = time[1] * 1000000 + time[2]
  local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
  if last[2] and tonumber(last[2]) >= at then at = tonumber(last[2]) + 1 end
  redis.call('ZADD', KEYS[2], string.format('%.0f', at), name)
  if redis.call('PTTL', KEYS[2]) < tonumber(ttl) then redis.call('PEXPIRE', KEYS[2], ttl) end
  while redis.call('ZCARD', KEYS[2]) > tonumber(ARGV[15]) do
    local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    redis.call('ZREM', KEYS[2], oldest)
    local key = ARGV[16] .. oldest .. ARGV[17]
    if over(redis.call('HGET', key, 's')) then redis.call('DEL', key) end
  end
end
return {1, ARGV[19]}";

/// Gives a task, which tells a process of its changes from now on.
pub(in crate::store::redis) const LOOK: &str = "if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local failed = judge(KEYS[1], ARGV[9])
if ARGV[10] ~= '0' and not over(redis.call('HGET', KEYS[1], 's')) then
  local known = redis.call('HGET', KEYS[1], 'w') or ','
  -- A full store takes no more: the process looks by itself.
  if #known < 512 and not string.find(known, ',' .. ARGV[10] .. ',', 1, true) then
    redis.pcall('HSET', KEYS[1], 'w', known .. ARGV[10] .. ',')
  end
end
return {failed, redis.call('HGETALL', KEYS[1]), redis.call('PTTL', KEYS[1])}";

/// Cancels a task that is not over, and tells the process that works on it. 0: it was over.
pub(in crate::store::redis) const CANCEL: &str = "local status = redis.call('HGET', KEYS[1], 's')
if not status then return false end
if over(status) then return {0, redis.call('HGETALL', KEYS[1])} end
redis.call('HSET', KEYS[1], 's', 'cancelled', 'u', ARGV[6], 'm', ARGV[10])
redis.call('HDEL', KEYS[1], 'q')
tell(KEYS[1], ARGV[9])
-- One for each task at most, and always with room: its handler is to stop.
if lives(KEYS[1]) then send(redis.call('HGET', KEYS[1], 'n'), math.huge, ARGV[9]) end
return {1, redis.call('HGETALL', KEYS[1])}";

/// Sends answers to the process that asks. 0: it is not there. 1: they are sent. 2: there is no room. 3: there is no such
/// task. 4: it is over.
pub(in crate::store::redis) const ANSWER: &str = "local status = redis.call('HGET', KEYS[1], 's')
if not status then return 3 end
if over(status) then return 4 end
if not lives(KEYS[1]) then return 0 end
return send(redis.call('HGET', KEYS[1], 'n'), tonumber(ARGV[3]), ARGV[9], 'answers', ARGV[10])";

/// Lists tasks of a session after a place, with their places. Those that have expired are listed no more.
pub(in crate::store::redis) const LIST: &str = "local out, after, most = {}, ARGV[9], tonumber(ARGV[10])
repeat
  local some = redis.call('ZRANGE', KEYS[1], '(' .. after, '+inf', 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
  for i = 1, #some, 2 do
    local key = ARGV[11] .. some[i] .. ARGV[12]
    after = some[i + 1]
    if redis.call('EXISTS', key) == 0 then
      redis.call('ZREM', KEYS[1], some[i])
    elseif #out < most then
      judge(key, some[i])
      out[#out + 1] = {after, redis.call('HMGET', key, 'd', 's', 'm', 'c', 'u', 't', 'i')}
    end
  end
until #some == 0 or #out >= most
return out";

/// Forgets a task of this process.
pub(in crate::store::redis) const FORGET: &str = "if redis.call('HGET', KEYS[1], 'p') ~= ARGV[1] then return 0 end
if KEYS[2] ~= KEYS[1] then redis.call('ZREM', KEYS[2], ARGV[2]) end
return redis.call('DEL', KEYS[1])";

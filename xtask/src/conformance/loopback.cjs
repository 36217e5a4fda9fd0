// The suite's mock servers bind every interface; this keeps them on loopback. `_listen2` is where `listen`
// still answers at once: the suite reads the port in the same turn, so a deferred bind would break it.
const { Server } = require("node:net");
const listen2 = Server.prototype._listen2;
Server.prototype._listen2 = function (address, port, type, backlog, fd, flags) {
  const everywhere = !address && typeof port === "number" && port >= 0 && !(fd >= 0);
  return listen2.call(this, everywhere ? "127.0.0.1" : address, port, everywhere ? 4 : type, backlog, fd, flags);
};

// A server on standard streams that would listen, too, on a port that is taken.
import { once } from "node:events";
import { createServer } from "node:net";
import { Server } from "tricorn";

const app = new Server("two-ways");
const other = createServer().listen(0, "127.0.0.1");
await once(other, "listening");
await app.listen(other.address().port).catch(({ message }) => console.error(`no port: ${message}`));
const { close } = await app.listen(0);
await app.serveStdio();
await close();
other.close();

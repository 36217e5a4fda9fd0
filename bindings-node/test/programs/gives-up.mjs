// Gives up connecting while the refresh token of its login is used up, and has nothing else to do: argv is the server's
// URL, and what its store finds, as JSON.
import { connect } from "tricorn";

const [url, found] = process.argv.slice(2);
const logins = JSON.parse(found);
const away = new AbortController();
const store = {
  load: () => logins[0].login,
  find: () => logins,
  save: (_, login) => void process.stdout.write(`${JSON.stringify({ saved: login })}\n`),
  remove: () => {},
  reserve() {
    setImmediate(() => away.abort());
    return () => {};
  },
};
await connect(url, { auth: { store, noBrowser: true }, signal: away.signal }).catch((error) => {
  console.error(`gave up: ${error.name}`);
});

// Heard only if something else keeps the program.
process.stdin.on("data", () => console.error("still there"));
process.stdin.unref();

// The fixture server of the contract suite: `run --stdio | --http HOST:PORT`.
import { Server } from "tricorn";
import { addByHand } from "./by-hand.mjs";
import { addContractTools } from "./contract.mjs";
import { addSearch } from "./extension.mjs";
import { addPrompts, addQuestions, addResources } from "./handshake.mjs";
import { serveMounted } from "./mounted.mjs";
import { addOfficialTools } from "./official.mjs";
import { addProtected, protection } from "./protected.mjs";
import { addStraightQuestions } from "./questions.mjs";
import { addTasks } from "./tasks.mjs";

const setting = (name) => (process.env[name] ? Number(process.env[name]) : undefined);
/** Only the settings that are set: the others keep their defaults. */
const given = (options) => Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

const key = process.env.EVERYTHING_REQUEST_STATE_KEY;
const taskTtl = setting("EVERYTHING_TASKS");
const protectedBy = process.env.EVERYTHING_AUTH;
const cacheSettings = process.env.EVERYTHING_CACHE;
/** The setting has seconds, as the options of most languages. */
const inMilliseconds = (hints) =>
  Object.fromEntries(
    Object.entries(hints).map(([name, value]) => [
      name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()),
      typeof value === "number" ? value * 1000 : typeof value === "object" ? inMilliseconds(value) : value,
    ]),
  );
const app = new Server("everything", {
  version: "1.0.0",
  title: "Everything",
  description: "Every fixture of the contract suite",
  websiteUrl: "https://example.com/everything",
  icons: [{ src: "https://example.com/icon.png", mimeType: "image/png", sizes: ["48x48"], theme: "light" }],
  instructions: "Call any tool.",
  ...given({
    pageSize: setting("EVERYTHING_PAGE_SIZE"),
    maxInFlight: setting("EVERYTHING_MAX_IN_FLIGHT"),
    revision: process.env.EVERYTHING_REVISION || undefined,
    requestStateKeys: key ? [key] : undefined,
    tasks: taskTtl && { maxTaskTtl: taskTtl * 1000 },
    auth: protectedBy ? protection(protectedBy) : undefined,
    cache: cacheSettings && inMilliseconds(JSON.parse(cacheSettings)),
  }),
});

if (process.env.EVERYTHING_EXTENSION) addSearch(app);
if (taskTtl) addTasks(app);
addOfficialTools(app);
addResources(app, cacheSettings !== undefined);
addPrompts(app);
addQuestions(app);
addByHand(app);
addStraightQuestions(app);
addContractTools(app, taskTtl ? "optional" : undefined);
if (protectedBy) addProtected(app);

const at = process.argv.indexOf("--http");
const milliseconds = (name) => (setting(name) === undefined ? undefined : setting(name) * 1000);
if (at < 0) {
  await app.run();
} else {
  const [host, port] = process.argv[at + 1].split(":");
  const sessions = {
    maxSessions: setting("EVERYTHING_MAX_SESSIONS"),
    maxConnections: setting("EVERYTHING_MAX_CONNECTIONS"),
    sessionIdleTimeout: milliseconds("EVERYTHING_SESSION_IDLE_TIMEOUT"),
    sseRetry: milliseconds("EVERYTHING_SSE_RETRY"),
    drainTimeout: milliseconds("EVERYTHING_DRAIN_TIMEOUT"),
    allowedHosts: process.env.EVERYTHING_ALLOWED_HOSTS ? [process.env.EVERYTHING_ALLOWED_HOSTS] : undefined,
    sse: process.env.EVERYTHING_SSE ? true : undefined,
    cert: process.env.EVERYTHING_CERT || undefined,
    key: process.env.EVERYTHING_KEY || undefined,
  };
  const mount = process.env.EVERYTHING_MOUNT;
  if (mount) serveMounted(app, mount, host, Number(port), given(sessions));
  else await app.run({ host, port: Number(port), ...given(sessions) });
}

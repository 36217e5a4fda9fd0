// The fixture server of the contract suite: `run --stdio | --http HOST:PORT`.
import { Server } from "tricorn";
import { addContractTools } from "./contract.mjs";
import { addPrompts, addQuestions, addResources } from "./handshake.mjs";
import { addOfficialTools } from "./official.mjs";

const setting = (name) => (process.env[name] ? Number(process.env[name]) : undefined);
/** Only the settings that are set: the others keep their defaults. */
const given = (options) => Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

const taskTtl = setting("EVERYTHING_TASKS");
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
    tasks: taskTtl && { maxTaskTtl: taskTtl * 1000 },
  }),
});

addOfficialTools(app);
addResources(app);
addPrompts(app);
addQuestions(app);
addContractTools(app, taskTtl ? "optional" : undefined);

const at = process.argv.indexOf("--http");
const milliseconds = (name) => (setting(name) === undefined ? undefined : setting(name) * 1000);
if (at < 0) {
  await app.run();
} else {
  const [host, port] = process.argv[at + 1].split(":");
  const sessions = {
    maxSessions: setting("EVERYTHING_MAX_SESSIONS"),
    sessionIdleTimeout: milliseconds("EVERYTHING_SESSION_IDLE_TIMEOUT"),
    sseRetry: milliseconds("EVERYTHING_SSE_RETRY"),
    allowedHosts: process.env.EVERYTHING_ALLOWED_HOSTS ? [process.env.EVERYTHING_ALLOWED_HOSTS] : undefined,
    sse: process.env.EVERYTHING_SSE ? true : undefined,
  };
  await app.run({ host, port: Number(port), ...given(sessions) });
}

// A client of a protected server, whose user logs in with the browser: node log-in.mjs URL [--no-browser]
//
// The login is kept for the next time: where logins of this user are by default, or in the directory that LOGINS names.
import { connect, TricornError } from "tricorn";

const [url, ...flags] = process.argv.slice(2);
if (!url) throw new Error("usage: log-in.mjs URL [--no-browser]");
const { LOGINS } = process.env;

/** @type {import("tricorn").Client | undefined} */
let client;
try {
  client = await connect(url, {
    auth: {
      clientName: "Log in", // what the page where the user consents calls this program
      noBrowser: flags.includes("--no-browser"),
      store: LOGINS ? { directory: LOGINS } : undefined,
    },
  });
  console.log("logged in:", (await client.callTool("whoami")).text);
  // This needs a scope that the token does not have yet, so the user is asked once more.
  console.log((await client.callTool("delete_file", { name: "draft.txt" })).text);
} catch (error) {
  if (!(error instanceof TricornError)) throw error;
  console.log("failed:", error.message);
  // Without a client it is the error that has the trace.
  for (const { step, url, status, decision } of client?.authTrace() ?? error.authTrace) {
    console.log(`  ${[step, url, status].filter(Boolean).join(" ")}: ${decision}`);
  }
  process.exitCode = 1;
} finally {
  await client?.close();
}

// A client on the official TypeScript SDK that logs in: commands on standard input, what came of them on standard output.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";

/** The SDK's `OAuthClientProvider`, and where the browser comes back to. */
class Login {
  #kept = {};
  #came;
  #wake;

  static async start() {
    const login = new Login();
    const server = createServer((request, response) => {
      response.end("done");
      login.#wake(new URL(request.url, login.redirectUrl).searchParams);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    server.unref();
    login.redirectUrl = `http://127.0.0.1:${server.address().port}/callback`;
    return login;
  }

  get clientMetadata() {
    return { client_name: "typescript-sdk", redirect_uris: [this.redirectUrl] };
  }

  state() {
    this.#kept.state = randomUUID();
    return this.#kept.state;
  }

  clientInformation = () => this.#kept.client;
  saveClientInformation = (client) => {
    this.#kept.client = client;
  };
  tokens = () => this.#kept.tokens;
  saveTokens = (tokens) => {
    this.#kept.tokens = tokens;
  };
  codeVerifier = () => this.#kept.verifier;
  saveCodeVerifier = (verifier) => {
    this.#kept.verifier = verifier;
  };

  redirectToAuthorization(url) {
    this.#came = new Promise((resolve) => {
      this.#wake = resolve;
    });
    process.stderr.write(`${url.href}\n`);
  }

  /** Waits for the browser, and returns the query with which it came back. */
  async comesBack() {
    const query = await this.#came;
    if (query.get("state") !== this.#kept.state) throw new Error("another login came back");
    return query;
  }

  /** Does it, and again when the user has logged in. */
  async within(transport, action) {
    try {
      return await action();
    } catch (error) {
      if (!(error instanceof UnauthorizedError)) throw error;
      await transport.finishAuth(await this.comesBack());
      return await action();
    }
  }
}

const clients = new Map();

const commands = {
  async connect({ client: key, target, options: { revision } }) {
    const login = await Login.start();
    const open = () => new StreamableHTTPClientTransport(new URL(target.url), { authProvider: login });
    const versionNegotiation = { mode: revision ? "legacy" : "auto" };
    let client;
    let transport = open();
    await login.within(transport, async () => {
      transport = open();
      client = new Client({ name: "interop", version: "1.0.0" }, { versionNegotiation });
      await client.connect(transport);
    });
    clients.set(key, { client, transport, login });
    return { protocolVersion: client.getNegotiatedProtocolVersion() };
  },
  async call_tool({ client: key, name, arguments: args }) {
    const { client, transport, login } = clients.get(key);
    const result = await login.within(transport, () => client.callTool({ name, arguments: args }));
    const text = result.content.map((block) => block.text ?? "").join("");
    return { text, structured: result.structuredContent, is_error: result.isError ?? false };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  let came;
  try {
    came = { result: await commands[command.do](command) };
  } catch (error) {
    came = { error: { kind: error?.name ?? "exception", message: String(error?.message ?? error) } };
  }
  process.stdout.write(`${JSON.stringify({ id: command.id, ...came })}\n`);
}
for (const { client } of clients.values()) await client.close();
process.exit(0);

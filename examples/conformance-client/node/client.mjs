// The client the official conformance suite drives: `run URL`, the scenario is in the environment.
import { connect } from "tricorn";
import { auth } from "./auth.mjs";

const url = process.argv[2];
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
// The oldest releases of the suite do not say which revision they mean.
const revision = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? "2025-11-25";

/** The tools; some of the suite's servers have none. */
async function offered(client) {
  return client.capabilities.tools ? client.listTools() : [];
}

const scenarios = {
  initialize: offered,

  async tools_call(client) {
    await client.listTools();
    await client.callTool("add_numbers", { a: 5, b: 3 });
  },

  async "request-metadata"(client) {
    const [tool] = await offered(client);
    if (tool) await client.callTool(tool.name);
  },

  async "http-standard-headers"(client) {
    for (const tool of await client.listTools()) await client.callTool(tool.name);
  },

  async "http-custom-headers"(client) {
    await client.listTools();
    const { toolCalls } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT);
    for (const call of toolCalls) await client.callTool(call.name, call.arguments);
  },

  async "http-invalid-tool-headers"(client) {
    for (const tool of await client.listTools()) await client.callTool(tool.name);
  },

  async "elicitation-sep1034-client-defaults"(client) {
    await client.listTools();
    await client.callTool("test_client_elicitation_defaults");
  },

  "sse-retry": (client) => client.callTool("test_reconnection"),

  "json-schema-ref-no-deref": (client) => client.listTools(),

  async "json-schema-2020-12-preservation"(client) {
    const tools = await client.listTools();
    const tool = tools.find(({ name }) => name === "json_schema_2020_12_tool");
    if (!tool) throw new Error("json_schema_2020_12_tool is not listed");
    await client.callTool("json_schema_echo", { schema: tool.inputSchema });
  },

  async "sep-2322-client-request-state"(client) {
    for (const name of ["echo_state", "unrelated", "no_state", "no_result_type"]) {
      await client.callTool(`test_mrtr_${name}`);
    }
  },
};

/** What the user says to every form. */
const answers = {
  // As it is: with its defaults.
  "elicitation-sep1034-client-defaults": {},
  "sep-2322-client-request-state": { confirmed: true },
};

const isProtected = scenario.startsWith("auth/");
const run = isProtected ? (client) => client.callTool("test-tool") : scenarios[scenario];
if (!url || !run) {
  console.error(`unknown scenario ${scenario}`);
  process.exit(2);
}

// What the suite asks a client to declare; answering is for the scenarios that need it.
const capabilities = scenario === "request-metadata" ? { roots: {}, sampling: {}, elicitation: {} } : {};
const client = await connect(url, {
  revision,
  capabilities,
  ...(isProtected && { auth: auth(scenario, JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}")) }),
  ...(answers[scenario] && { elicitation: () => answers[scenario] }),
});
try {
  await run(client);
} finally {
  await client.close();
}

// MCP Apps: a tool with a user interface, a host that shows it, and a client that shows none.
import { connect, Server } from "tricorn";
import {
  addUiResource,
  callableByApp,
  supportsUi,
  toolMeta,
  toolUi,
  UI_EXTENSION,
  uiClientSettings,
  uiExtension,
  visibleToModel,
} from "tricorn/apps";
import { z } from "zod";

const MAP = "ui://weather/map";
const City = z.object({ city: z.string() });

const app = new Server("weather", { extensions: [uiExtension()] });

app.tool(
  "forecast",
  { description: "The weather of the coming days", input: City, meta: toolMeta({ resourceUri: MAP }) },
  ({ city }, ctx) =>
    supportsUi(ctx)
      ? `${city}: sunny. The map is on the screen.`
      : `${city}: sunny from Monday to Sunday, 21 to 25 degrees.`,
);

app.tool(
  "refresh",
  {
    description: "What it is like now, for the map",
    input: City,
    meta: toolMeta({ resourceUri: MAP, visibility: ["app"] }),
  },
  ({ city }) => `${city}: 22 degrees`,
);

app.tool(
  "alerts",
  { description: "Warnings of storms", meta: toolMeta({ resourceUri: MAP, visibility: ["model"] }) },
  () => "none",
);

addUiResource(app, MAP, "<h1>Weather</h1>", {
  ui: { csp: { connectDomains: ["https://tiles.example.com"] }, permissions: { geolocation: true } },
});

/** @param {readonly { name: string }[]} tools */
const names = (tools) => tools.map((tool) => tool.name).join(", ");

/** @param {import("tricorn").Client} client */
async function host(client) {
  const tools = await client.listTools();
  console.log("the model may call:", names(tools.filter(visibleToModel)));
  console.log("the page may call:", names(tools.filter(callableByApp)));
  const [called] = tools; // by the model
  if (!called) return;
  console.log(`${called.name}:`, (await client.callTool(called.name, { city: "Rome" })).text);
  const uri = toolUi(called)?.resourceUri;
  if (uri) await show(client, uri);
}

const Wanted = z.object({
  csp: z.object({ connectDomains: z.array(z.string()) }),
  permissions: z.record(z.string(), z.object({})),
});

/**
 * In a sandboxed frame, which may do what the contents ask for and the host allows.
 *
 * @param {import("tricorn").Client} client
 * @param {string} uri
 */
async function show(client, uri) {
  const { contents, mimeType, text } = await client.readResource(uri);
  console.log(`page: ${uri}, ${mimeType}, ${text}`);
  const wanted = Wanted.parse(contents[0]?._meta?.["ui"]);
  console.log("requests:", wanted.csp.connectDomains.join(", "));
  console.log("permissions:", Object.keys(wanted.permissions).join(", "));
  // What the page calls goes through the host.
  console.log("refresh:", (await client.callTool("refresh", { city: "Rome" })).text);
}

console.log("with user interfaces");
const shows = await connect(app, { extensions: { [UI_EXTENSION]: uiClientSettings() } });
await host(shows);
await shows.close();

console.log("without");
const plain = await connect(app);
console.log("forecast:", (await plain.callTool("forecast", { city: "Rome" })).text);
await plain.close();

// MCP Apps: tools with a user interface of their own.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { apps, MisuseError, Server } from "tricorn";
import { withClient } from "tricorn/testing";

const REVISIONS = ["2025-06-18", "2025-11-25", "2026-07-28"];
const MAP = "ui://weather/map";
const HTML = "<!doctype html><title>map</title>";

const shows = { extensions: { [apps.UI_EXTENSION]: apps.uiClientSettings() } };

function server() {
  const app = new Server("weather", { extensions: [apps.uiExtension()] })
    .tool("forecast", { meta: apps.toolMeta({ resourceUri: MAP }, { "com.example/a": 1 }) }, (_, ctx) =>
      apps.supportsUi(ctx) ? "shown" : "told",
    )
    .tool("refresh", { meta: apps.toolMeta({ resourceUri: MAP, visibility: ["app"] }) }, () => "fresh")
    .tool("secret", { meta: apps.toolMeta({ visibility: ["model"] }) }, () => "secret")
    .tool("plain", () => "plain");
  apps.addUiResource(app, MAP, HTML, {
    title: "Map",
    ui: {
      csp: { connectDomains: ["https://api.example.com"], resourceDomains: ["https://*.example.com"] },
      permissions: { geolocation: true, clipboardWrite: true, camera: false },
      domain: "weather.example.com",
      prefersBorder: false,
    },
  });
  apps.addUiResource(app, "ui://weather/days/{day}", async function days({ day }) {
    return `${HTML}${day}`;
  });
  apps.addUiResource(app, "ui://weather/bytes", () => new TextEncoder().encode(HTML), { ui: { prefersBorder: true } });
  return app;
}

async function everywhere(use, options) {
  for (const revision of REVISIONS) {
    await withClient(server(), (client) => use(client, revision), { ...options, revision });
  }
}

test("the extension is negotiated by both sides, and text is there for the others", async () => {
  const text = async (client) => (await client.callTool("forecast")).text;
  await everywhere(async (client, revision) => {
    assert.deepEqual(client.capabilities.extensions, { "io.modelcontextprotocol/ui": {} }, revision);
    assert.equal(await text(client), "shown", revision);
  }, shows);
  const told = async (client, revision) => assert.equal(await text(client), "told", revision);
  await everywhere(told, {});
  await everywhere(told, { extensions: { [apps.UI_EXTENSION]: apps.uiClientSettings(["text/plain"]) } });
  await everywhere(told, { extensions: { [apps.UI_EXTENSION]: { mimeTypes: "text/html;profile=mcp-app" } } });
  await everywhere(told, { extensions: { [apps.UI_EXTENSION]: {} } });
  const without = new Server("without").tool("forecast", (_, ctx) => (apps.supportsUi(ctx) ? "shown" : "told"));
  await withClient(without, told, shows);
  const other = new Server("other", { extensions: [apps.uiExtension()] });
  other.tool("forecast", (_, ctx) => (apps.supportsUi(ctx, "text/x-ours") ? "shown" : "told"));
  const ours = { extensions: { [apps.UI_EXTENSION]: apps.uiClientSettings([apps.UI_MIME_TYPE, "text/x-ours"]) } };
  await withClient(other, async (client) => assert.equal(await text(client), "shown"), ours);
  await withClient(other, told, shows);
});

test("a tool says where its user interface is, and who may call it", async () => {
  await everywhere(async (client, revision) => {
    const tools = Object.fromEntries((await client.listTools()).map((tool) => [tool.name, tool]));
    const { forecast, refresh, secret, plain } = tools;
    assert.deepEqual(forecast._meta, { "com.example/a": 1, ui: { resourceUri: MAP } }, revision);
    assert.deepEqual(refresh._meta, { ui: { resourceUri: MAP, visibility: ["app"] } }, revision);
    assert.deepEqual(apps.toolUi(forecast), { resourceUri: MAP, visibility: ["model", "app"] }, revision);
    assert.deepEqual(apps.toolUi(refresh), { resourceUri: MAP, visibility: ["app"] }, revision);
    assert.deepEqual(apps.toolUi(secret), { visibility: ["model"] }, revision);
    assert.equal(apps.toolUi(plain), undefined, revision);
    const all = [forecast, refresh, secret, plain];
    assert.deepEqual(all.map(apps.visibleToModel), [true, false, true, true], revision);
    assert.deepEqual(all.map(apps.callableByApp), [true, true, false, true], revision);
  }, shows);
});

test("what others list is read with care", () => {
  assert.equal(apps.toolUi({ name: "t" }), undefined);
  for (const { meta, ui, model, app } of JSON.parse(readFileSync(new URL("../../tests/apps.json", import.meta.url)))) {
    const tool = { name: "t", inputSchema: { type: "object" }, _meta: meta };
    assert.deepEqual(apps.toolUi(tool) ?? null, ui, JSON.stringify(meta));
    assert.deepEqual([apps.visibleToModel(tool), apps.callableByApp(tool)], [model, app], JSON.stringify(meta));
  }
});

test("a user interface is a resource that says how it is to be shown", async () => {
  await everywhere(async (client, revision) => {
    const listed = (await client.listResources()).find(({ uri }) => uri === MAP);
    assert.deepEqual([listed.mimeType, listed.title, listed.name], [apps.UI_MIME_TYPE, "Map", MAP], revision);
    const contents = async (uri) => (await client.readResource(uri)).raw.contents;
    const ui = {
      csp: { connectDomains: ["https://api.example.com"], resourceDomains: ["https://*.example.com"] },
      permissions: { geolocation: {}, clipboardWrite: {} },
      domain: "weather.example.com",
      prefersBorder: false,
    };
    const mimeType = "text/html;profile=mcp-app";
    assert.deepEqual(await contents(MAP), [{ uri: MAP, mimeType, text: HTML, _meta: { ui } }], revision);
    const monday = "ui://weather/days/monday";
    assert.deepEqual(await contents(monday), [{ uri: monday, mimeType, text: `${HTML}monday` }], revision);
    const uri = "ui://weather/bytes";
    const blob = Buffer.from(HTML).toString("base64");
    assert.deepEqual(await contents(uri), [{ uri, mimeType, blob, _meta: { ui: { prefersBorder: true } } }], revision);
    const [template] = await client.listResourceTemplates();
    assert.deepEqual([template.name, template.mimeType], ["days", mimeType], revision);
  }, shows);
});

test("a session may have one of its own", async () => {
  const app = new Server("sessions", { extensions: [apps.uiExtension()], capabilities: ["resources"] });
  app.tool("open", (_, ctx) => apps.addUiResource(ctx.session, MAP, HTML));
  const use = async (client) => {
    await assert.rejects(client.readResource(MAP));
    await client.callTool("open");
    assert.equal((await client.readResource(MAP)).text, HTML);
  };
  await withClient(app, use, { ...shows, revision: "2025-11-25" });
});

test("what is wrong is named", async () => {
  const refused = (make, message) => {
    assert.throws(make, (error) => {
      assert.ok(error instanceof MisuseError, String(error));
      assert.match(error.message, message);
      return true;
    });
  };
  const uri = /resourceUri: expected a URI that begins with ui:\/\/, got "https:\/\/example\.com"/;
  refused(() => apps.toolMeta({ resourceUri: "https://example.com" }), uri);
  refused(() => apps.toolMeta({ visibility: "app" }), /visibility: expected a list of "model" and "app", got "app"/);
  refused(
    () => apps.toolMeta({ visibility: ["user"] }),
    /visibility: expected a list of "model" and "app", got \["user"\]/,
  );
  refused(() => apps.toolMeta({ resourceUrl: MAP }), /unknown option "resourceUrl", did you mean "resourceUri"\?/);
  refused(() => apps.uiClientSettings([]), /mimeTypes: expected a list of at least one MIME type, got \[\]/);
  refused(() => apps.uiClientSettings("text/html"), /mimeTypes: expected a list/);
  const app = new Server("wrong");
  const shown = (ui) => () => apps.addUiResource(app, MAP, HTML, { ui });
  refused(() => apps.addUiResource(app, "test://map", HTML), /uri: expected a URI that begins with ui:\/\//);
  refused(
    () => apps.addUiResource(app, MAP, 7),
    /user interface "ui:\/\/weather\/map": expected HTML, text or bytes, got 7/,
  );
  refused(() => apps.addUiResource(app, MAP, HTML, { mimeType: "text/html" }), /unknown option "mimeType"/);
  refused(shown({ cps: {} }), /^ui: unknown option "cps", did you mean "csp"\?$/);
  refused(shown({ csp: { connect: [] } }), /^ui: csp: unknown option "connect", did you mean "connectDomains"\?$/);
  refused(
    shown({ csp: { frameDomains: "x" } }),
    /^ui: csp: frameDomains: expected a list of origins, which are text, got "x"$/,
  );
  refused(shown({ permissions: { camera: {} } }), /^ui: permissions: camera: expected a boolean, got an object$/);
  refused(shown({ permissions: { phone: true } }), /^ui: permissions: unknown option "phone"/);
  refused(shown({ domain: 7 }), /^ui: domain: expected a string, got 7$/);
  refused(shown({ prefersBorder: "no" }), /^ui: prefersBorder: expected a boolean, got "no"$/);
  assert.equal(app.removeResource(MAP), false);
  const heard = [];
  const wrong = new Server("wrong", { onError: (error) => heard.push(String(error)) });
  apps.addUiResource(wrong, MAP, () => ({ html: HTML }));
  await withClient(wrong, (client) => assert.rejects(client.readResource(MAP), { code: -32603 }));
  assert.match(heard.join(), /user interface "ui:\/\/weather\/map": expected HTML, text or bytes, got an object/);
});

// What the servers on both versions of the official TypeScript SDK offer.
import { setTimeout } from "node:timers/promises";
import * as z from "zod/v4";

export const text = (text) => ({ content: [{ type: "text", text }] });

const person = {
  type: "object",
  properties: { username: { type: "string" }, email: { type: "string", format: "email" } },
  required: ["username", "email"],
};

export const capabilities = { logging: {}, resources: { subscribe: true } };

/**
 * Adds everything, and returns what `resources/subscribe` and `resources/unsubscribe` do. `sdk` has what the versions have
 * different words for: `completable`, `ResourceTemplate`, of a handler's context `notify(ctx, method, params)` and
 * `token(ctx)`; `ask(ctx, method, params, say)`, which gives what the call returns, `say` of the answer; and, if there is
 * one, `updated(server, uri)` to tell those who listen, and `kept`, for how long `test://static-text` keeps.
 */
export function offer(server, sdk) {
  tools(server);
  asking(server, sdk);
  resources(server, sdk);
  const two = z.object({
    arg1: sdk.completable(z.string(), (value) => ["paris", "park", "party", "test"].filter((w) => w.startsWith(value))),
    arg2: z.string(),
  });
  const prompt = { description: "Say two things", argsSchema: sdk.shapes ? two.shape : two };
  server.registerPrompt("test_prompt_with_arguments", prompt, ({ arg1, arg2 }) => ({
    messages: [
      { role: "user", content: { type: "text", text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` } },
    ],
  }));
  return watching(server, sdk);
}

function tools(server) {
  const numbers = z.object({ a: z.number().int(), b: z.number().int() });
  server.registerTool("add", { description: "Add two numbers", inputSchema: numbers }, async ({ a, b }) =>
    text(`${a + b}`),
  );
  const message = z.object({ text: z.string() });
  server.registerTool("echo", { description: "Return the text unchanged", inputSchema: message }, async (m) =>
    text(m.text),
  );
  const report = {
    description: "A weather report",
    inputSchema: z.object({ city: z.string() }),
    outputSchema: z.object({ city: z.string(), temperature: z.number(), conditions: z.string() }),
  };
  server.registerTool("structured", report, async ({ city }) => {
    const structuredContent = { city, temperature: 22.5, conditions: "sunny" };
    return { ...text(JSON.stringify(structuredContent)), structuredContent };
  });
  const kind = z.object({ kind: z.string() });
  server.registerTool("fail", { description: "Fail when asked to", inputSchema: kind }, async ({ kind }) => {
    return kind === "tool" ? { ...text("the tool says no"), isError: true } : text("no failure");
  });
}

function asking(server, { notify, ask, token }) {
  const nothing = z.object({});
  const progress = { description: "Report progress three times", inputSchema: nothing };
  server.registerTool("test_tool_with_progress", progress, async (_, ctx) => {
    for (const progress of [0, 50, 100]) {
      const progressToken = token(ctx);
      if (progressToken !== undefined) {
        await notify(ctx, "notifications/progress", { progressToken, progress, total: 100 });
      }
      await setTimeout(50);
    }
    return text("Tool with progress executed successfully");
  });
  const logging = { description: "Log three messages", inputSchema: nothing };
  server.registerTool("test_tool_with_logging", logging, async (_, ctx) => {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await notify(ctx, "notifications/message", { level: "info", data });
    }
    return text("Tool with logging executed successfully");
  });
  const model = { description: "Ask the client's model", inputSchema: z.object({ prompt: z.string() }) };
  server.registerTool("test_sampling", model, async ({ prompt }, ctx) => {
    const messages = [{ role: "user", content: { type: "text", text: prompt } }];
    const say = (answer) => text(`LLM response: ${answer.content.text}`);
    return ask(ctx, "sampling/createMessage", { messages, maxTokens: 100 }, say);
  });
  const user = { description: "Ask the user", inputSchema: z.object({ message: z.string() }) };
  server.registerTool("test_elicitation", user, async ({ message }, ctx) => {
    const say = ({ action, content }) =>
      text(`User response: action=${action}, content=${JSON.stringify(content ?? {})}`);
    return ask(ctx, "elicitation/create", { mode: "form", message, requestedSchema: person }, say);
  });
  const files = { description: "The URIs of the client's roots", inputSchema: nothing };
  server.registerTool("roots", files, async (_, ctx) => {
    return ask(ctx, "roots/list", {}, ({ roots }) => text(roots.map((root) => root.uri).join(" ")));
  });
}

function watching(server, { updated }) {
  // One server object is one client's.
  const subscribed = new Set();
  const changed = { description: "Say that a resource has changed", inputSchema: z.object({ uri: z.string() }) };
  server.registerTool("touch", changed, async ({ uri }) => {
    if (subscribed.has(uri)) await server.server.sendResourceUpdated({ uri });
    await updated?.(server, uri);
    return text(`touched ${uri}`);
  });
  return {
    subscribe: (uri) => {
      subscribed.add(uri);
      return {};
    },
    unsubscribe: (uri) => {
      subscribed.delete(uri);
      return {};
    },
  };
}

function resources(server, { ResourceTemplate, kept }) {
  const read = (name, uri, mimeType, content, options) =>
    server.registerResource(name, uri, { mimeType, ...options }, async () => ({
      contents: [{ uri, mimeType, ...content }],
    }));
  const staticText = { text: "This is the content of the static text resource." };
  read("static-text", "test://static-text", "text/plain", staticText, kept && { cacheHint: kept });
  read("static-binary", "test://static-binary", "image/png", { blob: "iVBORw==" });
  read("watched-resource", "test://watched-resource", "text/plain", { text: "This resource can be watched." });
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  const mimeType = "application/json";
  server.registerResource("template", template, { mimeType }, async (uri, { id }) => {
    const data = { id, templateTest: true, data: `Data for ID: ${id}` };
    return { contents: [{ uri: uri.href, mimeType, text: JSON.stringify(data) }] };
  });
}

/** The newest thousand events of one session, with the methods of the SDKs' `EventStore`. */
export class Events {
  #events = [];
  #last = 0;

  async storeEvent(stream, message) {
    const id = `${++this.#last}`;
    this.#events.push({ id, stream, message });
    if (this.#events.length > 1000) this.#events.shift();
    return id;
  }

  async getStreamIdForEventId(id) {
    return this.#events.find((event) => event.id === id)?.stream;
  }

  async replayEventsAfter(last, { send }) {
    const stream = await this.getStreamIdForEventId(last);
    const after = this.#events.filter((event) => event.stream === stream && Number(event.id) > Number(last));
    for (const { id, message } of after) {
      // A priming event has no message.
      if ("jsonrpc" in message) await send(id, message);
    }
    return stream ?? "";
  }
}

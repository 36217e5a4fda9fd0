// Our server in a web framework: web.mjs FRAMEWORK --http HOST:PORT
import { createServer } from "node:http";
import { app, carrier } from "./tools.mjs";

const [, , framework, , place] = process.argv;
const [host, port] = place.split(":");
const allowed = { allowedHosts: ["*"] };

/** Each gives a listener of `node:http`. */
const frameworks = {
  "express 5": () => express("express"),
  "express 4": () => express("express4"),
  fastify: async () => {
    const { default: fastify } = await import("fastify");
    const { default: compress } = await import("@fastify/compress");
    const { default: cookie } = await import("@fastify/cookie");
    const { default: cors } = await import("@fastify/cors");
    const { default: session } = await import("@fastify/session");
    let listener;
    const web = fastify({
      bodyLimit: 10 << 20,
      serverFactory: (handler) => {
        listener = handler;
        return createServer();
      },
    });
    await web.register(compress, { threshold: 0 });
    await web.register(cors);
    await web.register(cookie);
    await web.register(session, { secret: "a secret of the tests of 32 bytes or more", cookie: { secure: false } });
    const mcp = app.listener(allowed);
    carrier.isCarried = true;
    // A hook before the body is read would lose it there.
    web.addHook("preHandler", (request, _reply, done) => carrier.run({ session: request.session.sessionId }, done));
    web.all("/mcp", (request, reply) => {
      // Headers that plugins have set are with the reply, which is left here.
      for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value);
      reply.hijack();
      mcp(request.raw, reply.raw, { body: request.body, context: { id: request.id } });
    });
    await web.ready();
    return listener;
  },
  koa: async () => {
    const { default: Koa } = await import("koa");
    const { default: cors } = await import("@koa/cors");
    const { default: bodyParser } = await import("koa-bodyparser");
    const { default: compress } = await import("koa-compress");
    const { default: session } = await import("koa-session");
    const mcp = app.listener(allowed);
    const web = new Koa();
    web.keys = ["test"];
    web.use(compress({ threshold: 0 }));
    web.use(cors());
    web.use(session(web));
    web.use(bodyParser({ jsonLimit: "10mb" }));
    carrier.isCarried = true;
    web.use((ctx, next) => {
      ctx.session.requests = (ctx.session.requests ?? 0) + 1;
      return carrier.run({ session: ctx.session }, next);
    });
    web.use((ctx) => {
      ctx.respond = false;
      mcp(ctx.req, ctx.res, { body: ctx.request.body });
    });
    return web.callback();
  },
  hono: async () => {
    const { Hono } = await import("hono");
    const { bodyLimit } = await import("hono/body-limit");
    const { compress } = await import("hono/compress");
    const { cors } = await import("hono/cors");
    const { MemoryStore, sessionMiddleware } = await import("hono-sessions");
    const { getRequestListener } = await import("@hono/node-server");
    const { fetch } = app.http(allowed);
    const web = new Hono();
    web.use(compress({ threshold: 0 }), cors(), bodyLimit({ maxSize: 10 << 20 }));
    web.use(sessionMiddleware({ store: new MemoryStore(), expireAfterSeconds: 900 }));
    carrier.isCarried = true;
    web.use((c, next) => carrier.run({ session: c.get("session") }, next));
    web.all("/mcp", async (c) => {
      const read = c.req.method === "POST" ? { body: await c.req.json() } : {};
      return fetch(c.req.raw, { context: { seen: true }, ...read });
    });
    return getRequestListener(web.fetch);
  },
  node: async () => app.listener(allowed),
};

async function express(name) {
  const { default: make } = await import(name);
  const { default: compression } = await import("compression");
  const { default: cors } = await import("cors");
  const { default: session } = await import("express-session");
  const mcp = app.listener(allowed);
  const web = make();
  web.use(compression({ threshold: 0 }), cors(), make.json({ limit: "10mb" }));
  web.use(session({ secret: "test", resave: false, saveUninitialized: true }));
  // A context for the whole program, as tracing has it.
  carrier.isCarried = true;
  web.use((request, _response, next) => carrier.run({ session: request.session.id }, next));
  web.use("/mcp", (request, response) => mcp(request, response, { context: { user: "ada" } }));
  return web;
}

const server = createServer(await frameworks[framework]());
server.listen(Number(port), host, () => console.error(`ready http://${host}:${server.address().port}/mcp`));
process.once("SIGTERM", async () => {
  server.close();
  await app.close();
  server.closeAllConnections();
});

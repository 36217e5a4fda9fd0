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
    let listener;
    const web = fastify({
      serverFactory: (handler) => {
        listener = handler;
        return createServer();
      },
    });
    const mcp = app.listener(allowed);
    web.all("/mcp", (request, reply) => {
      reply.hijack();
      mcp(request.raw, reply.raw, { body: request.body, context: { id: request.id } });
    });
    await web.ready();
    return listener;
  },
  koa: async () => {
    const { default: Koa } = await import("koa");
    const { default: bodyParser } = await import("koa-bodyparser");
    const mcp = app.listener(allowed);
    const web = new Koa();
    web.use(bodyParser({ jsonLimit: "10mb" }));
    web.use((ctx) => {
      ctx.respond = false;
      mcp(ctx.req, ctx.res, { body: ctx.request.body });
    });
    return web.callback();
  },
  hono: async () => {
    const { Hono } = await import("hono");
    const { cors } = await import("hono/cors");
    const { getRequestListener } = await import("@hono/node-server");
    const { fetch } = app.http(allowed);
    const web = new Hono();
    web.use(cors());
    web.all("/mcp", (c) => fetch(c.req.raw, { context: { seen: true } }));
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

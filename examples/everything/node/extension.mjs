// An extension of the protocol: requests, a type of results and a notification of its own.
import { Extension, RpcError } from "tricorn";

const SEARCH = "com.example/search";
const FOUND = "notifications/com.example/found";
const query = { type: "object", properties: { query: { type: "string" } }, required: ["query"] };

export function addSearch(app) {
  const search = new Extension(SEARCH, { languages: ["en"] })
    .method(SEARCH, ({ query }, ctx) => ({ found: [query], wanted: ctx.extension(SEARCH) }), {
      idempotent: true,
      schema: query,
    })
    .method("com.example/later", () => ({ resultType: "com.example/later", at: 7 }))
    .method("com.example/fails", () => {
      throw new RpcError(-31050, "no such index");
    })
    .method("com.example/announce", ({ query }) => app.notify(FOUND, { query }, query), { schema: query })
    .notification(FOUND, "com.example/queries");
  app.addExtension(search);
}

// Elicitation: a tool asks the user, by a form or a page.
import { EventEmitter, once } from "node:events";
import { connect, Server, UrlElicitationRequiredError } from "tricorn";
import { z } from "zod";

const app = new Server("restaurant");

const booking = z.object({
  name: z.string(),
  seats: z.int().default(2),
  meal: z.enum(["fish", "vegetables"]).default("fish"),
});

app.tool("book", { description: "Book a table" }, async (_, ctx) => {
  const answer = await ctx.elicit("A table?", booking);
  if (answer.action !== "accept") return `${answer.action}d`;
  const { name, seats, meal } = answer.content;
  return `${seats} for ${name}, ${meal}`;
});

app.tool("sign_in", { description: "Sign in at a page that the client does not see" }, async (_, ctx) => {
  const { action } = await ctx.elicitUrl("Please sign in", "https://example.com/login?id=7", "7");
  // As a rule later, when the page says so.
  ctx.elicitationComplete("7");
  return action;
});

app.tool("pay", { description: "Needs a visit before it can even begin" }, () => {
  throw new UrlElicitationRequiredError([
    { message: "Please pay", url: "https://example.com/pay", elicitationId: "8" },
  ]);
});

/** @type {(import("tricorn").Answered)[]} */
const answers = [{ name: "Ada" }, "decline", { name: "Ada", seats: "many" }];
const pages = new EventEmitter();

const client = await connect(app, {
  revision: "2025-11-25",
  elicitation: {
    // Stands for a dialog.
    form: ({ message, requestedSchema }) => {
      const answer = answers.shift();
      if (answer !== "decline") {
        const fields = Object.entries(requestedSchema.properties).map(([name, field]) => {
          const choices = "enum" in field ? ` ${field.enum.join("|")}` : "";
          return name + choices + (field.default === undefined ? "" : ` (${field.default})`);
        });
        console.log(`asked: ${message} ${fields.join(", ")}`);
      }
      return answer;
    },
    // Shows the address and asks whether to go there.
    url: ({ url }) => {
      console.log("visit:", url);
      return true;
    },
  },
  onNotification: (method, params) => {
    if (method === "notifications/elicitation/complete") pages.emit("complete", params);
  },
});

console.log("book:", (await client.callTool("book")).text);
console.log("book:", (await client.callTool("book")).text);
if ((await client.callTool("book")).isError) console.log("book: the answer did not fit");
const completed = once(pages, "complete");
console.log("sign_in:", (await client.callTool("sign_in")).text);
console.log("complete:", (await completed)[0].elicitationId);
try {
  await client.callTool("pay");
} catch (error) {
  if (!(error instanceof UrlElicitationRequiredError)) throw error;
  console.log(`pay: error ${error.code}, ${error.elicitations[0]?.url}`);
}
const paid = once(pages, "complete");
app.elicitationComplete("8"); // the page was visited
console.log("complete:", (await paid)[0].elicitationId);
await client.close();

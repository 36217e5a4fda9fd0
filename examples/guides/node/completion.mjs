// Completion: how the value of an argument may go on.
import { connect, Server } from "tricorn";
import { z } from "zod";

const app = new Server("completion");
/** @type {Record<string, string[]>} */
const cities = { france: ["paris", "pau", "lyon"], england: ["plymouth", "london"] };

/** @type {(all: string[], value: string) => string[]} */
const begun = (all, value) => all.filter((one) => one.startsWith(value));

// The choices of `tone` complete themselves.
app.prompt(
  "review",
  {
    description: "Review code",
    input: z.object({ code: z.string(), language: z.string(), tone: z.enum(["kindly", "strictly"]).optional() }),
    complete: { language: (value) => begun(["python", "pypy", "rust"], value) },
  },
  ({ code, language, tone }) => `Review this ${language} ${tone ?? "kindly"}: ${code}`,
);

app.resource(
  "weather://{country}/{city}",
  {
    description: "The weather of a city",
    complete: {
      country: (value) => begun(Object.keys(cities), value),
      // What is known already decides what is suggested.
      city: (value, args) => begun(cities[args["country"] ?? ""] ?? [], value),
    },
  },
  ({ country, city }) => `Rain in ${city}, ${country}`,
);

app.prompt(
  "count",
  {
    description: "Count to a number",
    input: z.object({ number: z.string() }),
    complete: {
      // Too many: the first hundred are sent.
      number: (value) => {
        const values = begun([...Array(1000).keys()].map(String), value);
        return { values, total: values.length };
      },
    },
  },
  ({ number }) => `Count to ${number}.`,
);

const client = await connect(app);

let found = await client.complete({ type: "ref/prompt", name: "review" }, "language", "py");
console.log('language "py":', found.values.join(", "));
found = await client.complete({ type: "ref/prompt", name: "review" }, "tone", "");
console.log('tone "":', found.values.join(", "));
for (const country of Object.keys(cities)) {
  const template = /** @type {const} */ ({ type: "ref/resource", uri: "weather://{country}/{city}" });
  found = await client.complete(template, "city", "p", { country });
  console.log(`city "p" in ${country}:`, found.values.join(", "));
}
found = await client.complete({ type: "ref/prompt", name: "count" }, "number", "1");
console.log(`number "1": ${found.values.length} of ${found.total}, more: ${found.hasMore}`);
await client.close();

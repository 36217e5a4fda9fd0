// Schemas that the engine checks: the fixture shows its words, which are the same in every language.
import { jsonSchema } from "tricorn";
import { z } from "zod";

export function plain(schema) {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { io: "input" });
  return jsonSchema(json);
}

// Servers that ask, in every revision in which there are questions.
import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { Server } from "tricorn";
import { bridgeMetrics, withClient } from "tricorn/testing";

export const REVISIONS = ["2025-06-18", "2025-11-25", "2026-07-28"];
export const MODERN = "2026-07-28";

/** A form of one required field. */
export const form = (name, type = "string") => ({ type: "object", properties: { [name]: { type } }, required: [name] });

/** A server whose reports of failures are kept. */
export function asks(options = {}) {
  const errors = [];
  const app = new Server("asks", { onError: (error, name) => errors.push([name, error]), ...options });
  return { app, errors };
}

/**
 * Runs `test` in each revision, with a client whose user answers with `answer(message)`; `asked` are the messages. In
 * the end nothing has failed, and nothing is left.
 */
export async function everywhere({ app, errors }, answer, test, options = {}) {
  for (const revision of REVISIONS) {
    const asked = [];
    const elicitation = async ({ message }) => {
      asked.push(message);
      return answer(message);
    };
    const run = (client) => test(client, { revision, asked, rounds: revision === MODERN });
    await withClient(app, run, { elicitation, ...options, revision });
    assert.deepEqual(errors.splice(0), [], revision);
  }
  await turn();
  const { calls, ops } = bridgeMetrics();
  assert.deepEqual([calls, ops], [0, 0]);
}

/** Answers the question "a?" with `{a: "<a>"}`. */
export const named = (message) => ({ [message.slice(0, -1)]: `<${message.slice(0, -1)}>` });

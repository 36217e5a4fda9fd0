/** Lists that come in pages. */

import { PeerMisbehavedError, RpcError } from "../errors/errors.js";
import { received } from "../errors/origin.js";
import type { PromptPage, ResourcePage, ResourceTemplatePage, TaskPage, ToolPage } from "../model/results.js";

/** Pages of the lists, by method. */
export interface Lists {
  readonly "tools/list": ToolPage;
  readonly "resources/list": ResourcePage;
  readonly "resources/templates/list": ResourceTemplatePage;
  readonly "prompts/list": PromptPage;
  readonly "tasks/list": TaskPage;
}

/** The member of a page that holds its entries. */
const MEMBERS = {
  "tools/list": "tools",
  "resources/list": "resources",
  "resources/templates/list": "resourceTemplates",
  "prompts/list": "prompts",
  "tasks/list": "tasks",
} as const;

/** The member of an entry that tells it from others. */
const KEYS = {
  "tools/list": "name",
  "resources/list": "uri",
  "resources/templates/list": "uriTemplate",
  "prompts/list": "name",
  "tasks/list": "taskId",
} as const;

const INVALID_PARAMS = -32602;

/** Pages of one list; a server that sends more of them never ends. */
const MAX_PAGES = 1000;

/** The members of a message's object. */
export type Members = Record<string, unknown>;

/** A function that sends a request. */
type Send = (method: string, params: Readonly<Members>) => Promise<Members>;

/** The requests of a client with these options. */
export function sender<O>(
  client: { request(method: string, params: Members, options?: O): Promise<Members> },
  options?: O,
) {
  return (method: string, params: Readonly<Members>) => client.request(method, params, options);
}

/** One page: the first, or the one at `cursor`. */
export async function page<Method extends keyof Lists>(
  send: Send,
  method: Method,
  cursor: string | undefined,
): Promise<Lists[Method]> {
  const result = await send(method, cursor === undefined ? {} : { cursor });
  const member = MEMBERS[method];
  if (!Array.isArray(result[member]))
    throw received(new PeerMisbehavedError(`${method}: the result has no list "${member}"`));
  return result as unknown as Lists[Method];
}

/**
 * All pages, each asked for when it is needed. A cursor that the server refuses may be of a page that was kept, and of a
 * list that is another one now: then all are asked for once more from the first, and `anew` is true from there on.
 */
async function* pages(send: Send, method: keyof Lists) {
  const seen = new Set<string>();
  let anew = false;
  for (let cursor: string | undefined; ; ) {
    let one: Lists[keyof Lists];
    try {
      one = await page(send, method, cursor);
    } catch (error) {
      if (cursor === undefined || anew || !(error instanceof RpcError) || error.code !== INVALID_PARAMS) throw error;
      [anew, cursor] = [true, undefined];
      seen.clear();
      continue;
    }
    const { nextCursor, ...rest } = one;
    const listed = (rest as unknown as Readonly<Record<string, readonly Members[]>>)[MEMBERS[method]] ?? [];
    yield { listed, anew };
    cursor = nextCursor ?? undefined;
    if (cursor === undefined) return;
    // An empty cursor is one like any other, but one that comes again is the end of a server that has none.
    if (cursor === "" && seen.has(cursor)) return;
    if (seen.has(cursor))
      throw received(new PeerMisbehavedError(`${method} never ends: the cursor "${cursor}" came twice`));
    if (seen.add(cursor).size < MAX_PAGES) continue;
    throw received(new PeerMisbehavedError(`${method} never ends: there are more than ${MAX_PAGES} pages`));
  }
}

/** The entries of all pages, each page asked for when it is needed, and none a second time when the list begins anew. */
export async function* entries<Entry>(send: Send, method: keyof Lists): AsyncGenerator<Entry, void, undefined> {
  const given = new Set<unknown>();
  for await (const { listed, anew } of pages(send, method)) {
    for (const entry of listed) {
      const key = entry[KEYS[method]];
      if (anew && given.has(key)) continue;
      if (!anew) given.add(key);
      yield entry as unknown as Entry;
    }
  }
}

/** All of them at once. */
export async function collected<Entry>(send: Send, method: keyof Lists): Promise<Entry[]> {
  const all: Entry[] = [];
  let isAnew = false;
  for await (const { listed, anew } of pages(send, method)) {
    if (anew !== isAnew) all.length = 0;
    isAnew = anew;
    for (const entry of listed) all.push(entry as unknown as Entry);
  }
  return all;
}

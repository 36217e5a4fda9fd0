// Reads what a server says how often it was read, with what others have kept in a folder: `reads.mjs URL FOLDER`.
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { argv, stdout } from "node:process";
import { fileURLToPath } from "node:url";
import { connect } from "tricorn";

/** A cache's store of files, which processes share. */
export function folderStore(folder) {
  const at = (key) => join(folder, encodeURIComponent(key));
  return {
    get: (keys) => Promise.all(keys.map((key) => readFile(at(key), "utf8").catch(() => null))),
    set: (key, text) => writeFile(at(key), text),
    delete: (key) => rm(at(key), { force: true }),
  };
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const [, , url, folder] = argv;
  const client = await connect(url, { revision: "2026-07-28", cache: { store: folderStore(folder) } });
  const { text } = await client.readResource("test://count");
  stdout.write(`${text} ${client.metrics().cache.hits}\n`);
  await client.close();
}

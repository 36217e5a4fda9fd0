// Prints the public surface of the Node package, one declaration a line: `node node.mjs [--write | --check] [DIST]`.
//
// Reads the declaration files that the build emits (default: bindings-node/dist) for each entry of package.json, follows
// `export {…} from`, and prints what is exported and every declaration that those name. Comments are left out.

import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "../..");
const given = process.argv.slice(2);
const write = given[0] === "--write";
const check = given[0] === "--check";
const dist = resolve(given[write || check ? 1 : 0] ?? join(root, "bindings-node/dist"));

/** Removes comments, keeps strings, and makes every run of white space one space. */
function clean(text) {
  const token = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`|\s+/g;
  return text.replace(token, (found) => (/^["'`]/.test(found) ? found : " ")).replace(/ +/g, " ");
}

/** Splits at `;`, and where `ends` says so after a closing brace, outside of brackets. */
function split(text, ends) {
  const parts = [];
  let depth = 0;
  let from = 0;
  const cut = (to) => {
    const part = text.slice(from, to).trim();
    if (part) parts.push(part);
    from = to + 1;
  };
  for (const { 0: token, index } of text.matchAll(
    /"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`|[()[\]{};]/g,
  )) {
    if (/^[([{]$/.test(token)) depth++;
    else if (/^[)\]}]$/.test(token)) depth--;
    if (depth === 0 && token === ";") cut(index);
    if (depth === 0 && token === "}" && ends(text.slice(from, index).trim())) {
      parts.push(text.slice(from, index + 1).trim());
      from = index + 1;
    }
  }
  cut(text.length);
  return parts;
}

const braced = (head) => /^(export )?(declare )?(default )?(abstract )?(class|interface|enum|namespace) /.test(head);
const modules = new Map();

/** Reads a declaration file: what it declares, imports and exports. */
function load(file) {
  const known = modules.get(file);
  if (known) return known;
  const module = { declared: new Map(), imported: new Map(), exported: new Map(), all: [] };
  modules.set(file, module);
  const beside = (path) => (path.startsWith(".") ? join(dirname(file), path.replace(/\.js$/, ".d.ts")) : path);
  for (const statement of split(clean(readFileSync(file, "utf8")), braced)) {
    const list = /^(import|export) (?:type )?\{(.*)\}(?: from "([^"]+)")?$/.exec(statement);
    const star = /^(import|export) (?:type )?\*(?: as (\w+))? from "([^"]+)"$/.exec(statement);
    if (list) {
      for (const item of list[2].split(",").map((text) => text.trim().replace(/^type /, ""))) {
        const [name, as = name] = item.split(" as ");
        const target = { file: list[3] ? beside(list[3]) : file, name };
        if (name) module[list[1] === "import" ? "imported" : "exported"].set(as, target);
      }
    } else if (star?.[2]) {
      module[star[1] === "import" ? "imported" : "exported"].set(star[2], { file: beside(star[3]), name: "*" });
    } else if (star) {
      module.all.push(beside(star[3]));
    } else {
      const text = statement.replace(/^export /, "").replace(/^declare /, "");
      const head = /^(abstract class|class|interface|type|enum|namespace|const|function|let) ([\w$]+)/.exec(text);
      if (!head) continue;
      const declaration = { file, kind: head[1], name: head[2], texts: module.declared.get(head[2])?.texts ?? [] };
      declaration.texts.push(text);
      module.declared.set(head[2], declaration);
      if (statement.startsWith("export ")) module.exported.set(head[2], { file, name: head[2] });
    }
  }
  return module;
}

/** The declaration of a name that a file declares, imports or exports; undefined if it is of another package. */
function find(file, name) {
  if (!file.startsWith(dist)) return undefined;
  const module = load(file);
  if (module.declared.has(name)) return module.declared.get(name);
  const target = module.imported.get(name) ?? module.exported.get(name);
  if (target) return target.file === file && target.name === name ? undefined : find(target.file, target.name);
  for (const other of module.all) {
    const found = find(other, name);
    if (found) return found;
  }
  return undefined;
}

/** The exported names of a file. */
function exports(file) {
  const module = load(file);
  return [...module.exported.keys(), ...module.all.flatMap((other) => exports(other))];
}

/** The names of types in a declaration, and of values behind `typeof` and in computed keys. */
function* named(text) {
  const bare = text.replace(/"(?:\\.|[^"\\])*"/g, '""');
  for (const { 0: name, index } of bare.matchAll(
    /(?<![\w$.])[A-Z][\w$]*(?!\??:)|(?<=typeof )[\w$]+|(?<=\[)[a-z][\w$]*(?=\])/g,
  )) {
    if (bare[index + name.length] !== "(") yield name;
  }
}

const lines = [];
const printed = new Map();
const work = [];

/** Adds a declaration: its head, and each member of a class or an interface. */
function print(path, { file, kind, texts }) {
  for (const text of texts) {
    const names = new Set(named(text));
    const open = /^(abstract class|class|interface)$/.test(kind) ? bodyOf(text) : -1;
    lines.push([path, (open < 0 ? text : text.slice(0, open)).trim()]);
    for (const member of open < 0 ? [] : split(text.slice(open + 1, -1), () => false)) {
      if (/^(#|private )/.test(member)) continue;
      const name = /^(?:(?:readonly|static|abstract|get|set|protected|declare) )*(\[.*?\]|"[^"]*"|[\w$]*)/.exec(
        member,
      )[1];
      lines.push([`${path}.${name || "()"}`, member]);
    }
    for (const name of names) {
      const found = find(file, name);
      if (!found || printed.has(found) || basename(found.file) === "types.d.ts") continue;
      printed.set(found, `named.${name}`);
      work.push([`named.${name}`, found]);
    }
  }
}

/** The place of the brace that opens a body: behind the type parameters and what the declaration extends. */
function bodyOf(text) {
  let depth = 0;
  for (const { 0: token, index } of text.replaceAll("=>", "==").matchAll(/"(?:\\.|[^"\\])*"|[<>(){}[\]]/g)) {
    if (token === "{" && depth === 0) return index;
    if (/^[<({[]$/.test(token)) depth++;
    else if (/^[>)}\]]$/.test(token)) depth--;
  }
  return -1;
}

const entries = Object.entries(JSON.parse(readFileSync(join(root, "package.json"), "utf8")).exports)
  .filter(([, target]) => target.import)
  .map(([entry, target]) => [entry.replace(/^\./, "tricorn"), join(dist, basename(target.import.types))])
  // The types of the protocol first: the other entries print those as references.
  .sort(([a], [b]) => Number(b === "tricorn/types") - Number(a === "tricorn/types") || (a < b ? -1 : 1));
for (const [entry, file] of entries) {
  for (const name of exports(file)) {
    const path = `${entry}.${name}`;
    const target = load(file).exported.get(name);
    if (target?.name === "*") {
      lines.push([path, `= ${entries.find(([, other]) => other === target.file)?.[0] ?? target.file}`]);
      continue;
    }
    const found = find(file, name);
    if (!found) {
      lines.push([path, `= ${target.file} ${target.name}`]);
    } else if (printed.has(found)) {
      lines.push([path, `= ${printed.get(found)}`]);
    } else {
      printed.set(found, path);
      work.push([path, found]);
    }
  }
}
while (work.length > 0) print(...work.shift());
lines.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
const text = lines.map(([path, text]) => `${path} ${text}\n`).join("");
if (write) writeFileSync(join(here, "node.txt"), text);
else if (check) compare(readFileSync(join(here, "node.txt"), "utf8"));
else process.stdout.write(text);

/** Prints the declarations that only one of both has, and fails if there are any. */
function compare(known) {
  const [before, now] = [known, text].map((all) => all.split("\n"));
  const [gone, come] = [new Set(now), new Set(before)].map((other, at) =>
    [before, now][at].filter((line) => !other.has(line)),
  );
  if (gone.length + come.length === 0) return;
  process.stdout.write(`${[...gone.map((line) => `-${line}`), ...come.map((line) => `+${line}`)].join("\n")}\n`);
  process.stderr.write("the public surface of Node has changed: `cargo xtask surface --write` takes it over\n");
  process.exitCode = 1;
}

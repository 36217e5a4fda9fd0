/** Warnings where programs use what the specification has deprecated, as Node's own API does. All of it works on. */

/**
 * Deprecated features: the name, since when it is deprecated, and what to use; `tests/deprecated.toml` has the same.
 */
const FEATURES = {
  roots: ["roots (SEP-2577)", "2026-07-28", "use tool arguments, resource URIs or configuration"],
  sampling: ["sampling (SEP-2577)", "2026-07-28", "call the API of a model's provider"],
  logging: ["log messages (SEP-2577)", "2026-07-28", "use standard error or OpenTelemetry"],
  httpSse: ["HTTP+SSE (SEP-2596)", "2025-03-26", "use Streamable HTTP"],
} as const;

const OPTIONS = {
  roots: "roots",
  sampling: "sampling",
  onLog: "logging",
  sse: "httpSse",
  ssePath: "httpSse",
  sseMessagePath: "httpSse",
} as const;

const warned = new Set<string>();

/** A `DeprecationWarning` for what is used by this name, the first time. */
export function deprecated(name: string, feature: keyof typeof FEATURES): void {
  if (warned.has(name)) return;
  warned.add(name);
  const [what, since, instead] = FEATURES[feature];
  process.emitWarning(`${name}: MCP ${since} deprecates ${what}: ${instead}`, "DeprecationWarning");
}

/** Warns of the options among these that are deprecated, and not just switched off. */
export function warnOptions(given: object): void {
  for (const [name, feature] of Object.entries(OPTIONS)) {
    const value = (given as Readonly<Record<string, unknown>>)[name];
    if (value !== undefined && value !== false) deprecated(`option "${name}"`, feature);
  }
}

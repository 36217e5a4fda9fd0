/**
 * All of the package in one file, `dist/core.js`: the entry points take what they export from there, so that they share
 * it, and that a program loads two files. Private: no promise of stability.
 */

export { errorFrom } from "./errors.js";
export { abandon, addon, bridge } from "./host.js";
export { mount } from "./http.js";
export * from "./index.js";
export { libcOf } from "./libc.js";
export { loggable } from "./logger.js";
export { nativeServer } from "./server.js";
export * from "./testing.js";

/**
 * All of the package in one file, `dist/core.js`: the entry points take what they export from there, so that they share
 * it, and that a program loads two files. Private: no promise of stability.
 */

export { errorFrom } from "./bridge/errors.js";
export { abandon, addon, bridge } from "./bridge/host.js";
export { libcOf } from "./bridge/libc.js";
export { nativeServer } from "./bridge/local-server.js";
export { loggable } from "./call/logger.js";
export * from "./index.js";
export { mount } from "./server/http.js";
export * from "./testing.js";

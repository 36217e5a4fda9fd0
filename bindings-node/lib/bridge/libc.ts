/** The C library of a Linux: a compiled module fits one of them. */

import { closeSync, openSync, readSync } from "node:fs";

/** The ends of the names of compiled modules. */
export type Libc = "gnu" | "musl";

/** The segment of an ELF file that names the program which loads it. */
const PT_INTERP = 3;

/**
 * The C library that a program was linked with; undefined where the file does not tell.
 *
 * Its loader is named in its first page as a rule, so that this costs two reads. `process.report` knows it as well, and
 * takes some milliseconds.
 */
export function libcOf(program: string): Libc | undefined {
  try {
    const file = openSync(program, "r");
    try {
      return fromLoader(interpreter(file));
    } finally {
      closeSync(file);
    }
  } catch {
    // No such file, or it may not be read.
    return undefined;
  }
}

function fromLoader(path: string): Libc | undefined {
  if (path.includes("/ld-musl-")) return "musl";
  return path.includes("/ld-linux") ? "gnu" : undefined;
}

/** All platforms of the package have 64 bits and the lower byte first. */
function interpreter(file: number): string {
  const head = read(file, 0, 4096);
  if (head.readUInt32BE(0) !== 0x7f454c46 || head[4] !== 2 || head[5] !== 1) return "";
  const start = Number(head.readBigUInt64LE(0x20));
  const size = head.readUInt16LE(0x36);
  const count = head.readUInt16LE(0x38);
  const table = read(file, start, size * count);
  for (let at = 0; at + size <= table.length; at += size) {
    if (table.readUInt32LE(at) !== PT_INTERP) continue;
    const place = Number(table.readBigUInt64LE(at + 8));
    return read(file, place, Math.min(Number(table.readBigUInt64LE(at + 0x20)), 4096)).toString("latin1");
  }
  return "";
}

function read(file: number, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  return buffer.subarray(0, readSync(file, buffer, 0, length, position));
}

import { gzipSync } from 'node:zlib';
import { compress, init } from '@bokuweb/zstd-wasm';

await init();

/** Each part as a gzip member of its own, one after another. */
export function gzip(...parts: readonly (string | Uint8Array)[]): Buffer {
  return Buffer.concat(parts.map((part) => gzipSync(part)));
}

/** Each part as a zstd frame of its own, one after another. */
export function zstd(...parts: readonly (string | Uint8Array)[]): Buffer {
  return Buffer.concat(parts.map((part) => compress(Buffer.from(part), 3)));
}

/** A skippable frame, which a reader skips (RFC 8878, 3.1.2). */
export function skippableFrame(bytes: number): Buffer {
  const frame = Buffer.alloc(8 + bytes, 0xaa);
  frame.writeUInt32LE(0x184d2a50, 0);
  frame.writeUInt32LE(bytes, 4);
  return frame;
}

import { crc32 } from 'node:zlib';

const digits = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#';

function words(bytes: number, ...values: readonly number[]): Buffer {
  const buffer = Buffer.alloc(bytes * values.length);
  values.forEach((value, i) => buffer.writeUIntLE(value, i * bytes, bytes));
  return buffer;
}

/** A deletion vector of ascending rows, as Roaring bitmaps in their portable form, after the specification; with containers of runs or without. */
export function vectorBytes(rows: readonly number[], hasRuns: boolean): Buffer {
  const byHigh = groups(rows, 2 ** 32);
  const parts = [...byHigh].map(([high, low]) => Buffer.concat([words(4, high), bitmap(low, hasRuns)]));
  return Buffer.concat([words(4, 1_681_511_377), words(4, byHigh.size, 0), ...parts]);
}

function groups(rows: readonly number[], size: number): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (const row of rows) {
    const key = Math.floor(row / size);
    const own = found.get(key) ?? [];
    found.set(key, own);
    own.push(row % size);
  }
  return found;
}

function bitmap(rows: readonly number[], hasRuns: boolean): Buffer {
  const containers = [...groups(rows, 2 ** 16)];
  const count = containers.length;
  const headers = containers.map(([key, values]) => words(2, key, values.length - 1));
  const bodies = containers.map(([, values]) =>
    hasRuns ? runs(values) : values.length > 4096 ? bits(values) : words(2, ...values),
  );
  const start = hasRuns
    ? Buffer.concat([words(2, 12_347, count - 1), Buffer.alloc((count + 7) >> 3, 0xff)])
    : words(4, 12_346, count);
  // Readers don't need the offsets, so these are not told truly.
  const offsets = !hasRuns || count >= 4 ? Buffer.alloc(4 * count) : Buffer.alloc(0);
  return Buffer.concat([start, ...headers, offsets, ...bodies]);
}

function runs(values: readonly number[]): Buffer {
  const found: [number, number][] = [];
  for (const value of values) {
    const last = found.at(-1);
    if (last !== undefined && last[0] + last[1] + 1 === value) last[1]++;
    else found.push([value, 0]);
  }
  return words(2, found.length, ...found.flat());
}

function bits(values: readonly number[]): Buffer {
  const set = Buffer.alloc(8192);
  for (const value of values) set[value >> 3]! |= 1 << (value & 7);
  return set;
}

/** A vector as it lies in a file: with its length and checksum. */
export function storedVector(vector: Buffer): Buffer {
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeInt32BE(vector.length);
  checksum.writeUInt32BE(crc32(vector));
  return Buffer.concat([length, vector, checksum]);
}

/** Bytes as text of Z85, with zeros behind them. */
export function z85(bytes: Buffer): string {
  const padded = Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
  let text = '';
  for (let at = 0; at < padded.length; at += 4) {
    const value = padded.readUInt32BE(at);
    for (let power = 4; power >= 0; power--) text += digits[Math.floor(value / 85 ** power) % 85];
  }
  return text;
}

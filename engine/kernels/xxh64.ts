/**
 * XXH64 with seed 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md): a hash that tells contents apart some
 * five times as fast as SHA-256. It withstands chance, and nobody who wants two contents to be taken for one.
 */

/** What is hashed at once: eight bytes for each of four lanes. */
export const stripeBytes = 32;

const prime1 = 0x9e3779b185ebca87n;
const prime2 = 0xc2b2ae3d27d4eb4fn;
const prime3 = 0x165667b19e3779f9n;
const prime4 = 0x85ebca77c2b2ae63n;
const prime5 = 0x27d4eb2f165667c5n;

/** The four lanes before the first stripe: low and high half of each. */
export function newLanes(): Uint32Array {
  const lanes = new BigUint64Array([prime1 + prime2, prime2, 0n, -prime1]);
  return new Uint32Array(lanes.buffer);
}

const [prime1Low, prime1High] = halvesOf(prime1);
const [prime2Low, prime2High] = halvesOf(prime2);

function halvesOf(value: bigint): [low: number, high: number] {
  return [Number(value & 0xffffffffn), Number(value >> 32n)];
}

/**
 * The high half of the product of two unsigned 32-bit numbers. As a double the product is wrong by some thousands at most, and without
 * its low half it is a multiple of 2^32: so the nearest one is right.
 */
function highProduct(a: number, b: number, low: number): number {
  return ((a * b - low) * 2 ** -32 + 0.5) >>> 0;
}

/** Takes the whole stripes of `bytes` into the lanes; what is behind the last one is left. */
export function addStripes(lanes: Uint32Array, bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const end = bytes.length - stripeBytes;
  for (let lane = 0; lane < 4; lane++) {
    let low = lanes[2 * lane]!;
    let high = lanes[2 * lane + 1]!;
    for (let at = 0; at <= end; at += stripeBytes) {
      const inputLow = view.getUint32(at + 8 * lane, true);
      const inputHigh = view.getUint32(at + 8 * lane + 4, true);
      const addedLow = Math.imul(inputLow, prime2Low) >>> 0;
      const sumLow = low + addedLow;
      const sumHigh =
        high +
        highProduct(inputLow, prime2Low, addedLow) +
        Math.imul(inputLow, prime2High) +
        Math.imul(inputHigh, prime2Low) +
        (sumLow >= 2 ** 32 ? 1 : 0);
      const turnedLow = ((sumLow << 31) | (sumHigh >>> 1)) >>> 0;
      const turnedHigh = (sumHigh << 31) | ((sumLow | 0) >>> 1);
      low = Math.imul(turnedLow, prime1Low) >>> 0;
      high =
        (highProduct(turnedLow, prime1Low, low) +
          Math.imul(turnedLow, prime1High) +
          Math.imul(turnedHigh, prime1Low)) >>>
        0;
    }
    lanes[2 * lane] = low;
    lanes[2 * lane + 1] = high;
  }
}

function wrapped(value: bigint): bigint {
  return BigInt.asUintN(64, value);
}

function rotated(value: bigint, bits: bigint): bigint {
  return wrapped((value << bits) | (value >> (64n - bits)));
}

function round(lane: bigint, input: bigint): bigint {
  return wrapped(rotated(wrapped(lane + input * prime2), 31n) * prime1);
}

/** The hash of content of `length` bytes, whose stripes went into the lanes and which ends with `rest`, less than a stripe. */
export function finishXxh64(lanes: Uint32Array, length: number, rest: Uint8Array): bigint {
  let hash = length < stripeBytes ? prime5 : mergedLanes(lanes);
  hash = wrapped(hash + BigInt(length));
  const view = new DataView(rest.buffer, rest.byteOffset, rest.length);
  let at = 0;
  for (; at + 8 <= rest.length; at += 8) {
    hash = wrapped(rotated(hash ^ round(0n, view.getBigUint64(at, true)), 27n) * prime1 + prime4);
  }
  if (at + 4 <= rest.length) {
    hash = rotated(hash ^ wrapped(BigInt(view.getUint32(at, true)) * prime1), 23n);
    hash = wrapped(hash * prime2 + prime3);
    at += 4;
  }
  for (; at < rest.length; at++) {
    hash = wrapped(rotated(hash ^ wrapped(BigInt(rest[at]!) * prime5), 11n) * prime1);
  }
  hash = wrapped((hash ^ (hash >> 33n)) * prime2);
  hash = wrapped((hash ^ (hash >> 29n)) * prime3);
  return hash ^ (hash >> 32n);
}

function mergedLanes(halves: Uint32Array): bigint {
  const turns = [1n, 7n, 12n, 18n];
  const lanes = turns.map((_, i) => (BigInt(halves[2 * i + 1]!) << 32n) | BigInt(halves[2 * i]!));
  let hash = wrapped(lanes.reduce((sum, lane, i) => sum + rotated(lane, turns[i]!), 0n));
  for (const lane of lanes) hash = wrapped((hash ^ round(0n, lane)) * prime1 + prime4);
  return hash;
}

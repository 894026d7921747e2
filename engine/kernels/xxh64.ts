/**
 * XXH64 with seed 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md): a hash that distinguishes contents, about five times
 * as fast as SHA-256. It is not cryptographic: it is safe against accidental collisions, not against deliberate ones.
 */
import { openScratch, scratchBytes } from '../core/scratch.js';
import { kernelsOver } from './kernels.js';

/** Bytes of a stripe, which is the unit of hashing: eight bytes for each of the four lanes. */
export const stripeBytes = 32;

const prime1 = 0x9e3779b185ebca87n;
const prime2 = 0xc2b2ae3d27d4eb4fn;
const prime3 = 0x165667b19e3779f9n;
const prime4 = 0x85ebca77c2b2ae63n;
const prime5 = 0x27d4eb2f165667c5n;

/** The initial state of the four lanes: low and high half of each. */
export function newLanes(): Uint32Array {
  const lanes = new BigUint64Array([prime1 + prime2, prime2, 0n, -prime1]);
  return new Uint32Array(lanes.buffer);
}

/** Bytes that are not in the kernels' memory are copied there in pieces of this size, which stay in the CPU's cache. */
const copiedBytesMax = 64 * 1024;

/** Adds the whole stripes of `bytes` to the lanes. Bytes after the last whole stripe are ignored. */
export function addStripes(lanes: Uint32Array, bytes: Uint8Array): void {
  const isHeld = scratchBytes(bytes, 1) === 0;
  const pieceBytes = isHeld ? bytes.length : copiedBytesMax;
  for (let from = 0; from + stripeBytes <= bytes.length; from += pieceBytes) {
    const to = Math.min(bytes.length, from + pieceBytes);
    const scratch = openScratch(lanes.byteLength + (isHeld ? 0 : to - from));
    const lanesAt = scratch.copy(lanes, 0, lanes.length);
    const pieceAt = scratch.place(bytes, from, to);
    kernelsOver(scratch).xxh64Stripes(lanesAt, pieceAt, Math.floor((to - from) / stripeBytes));
    scratch.copyOut(lanesAt, lanes, 0, lanes.length);
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

/**
 * The hash of content of `length` bytes whose whole stripes have been added to the lanes. `rest` has the bytes after the last whole stripe.
 */
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

/** A hash of content as text, in the form of checkpoints: `xxh64:` and 16 hex digits. */
export function hashText(hash: bigint): string {
  return 'xxh64:' + hash.toString(16).padStart(16, '0');
}

/** Computes the XXH64 of content that arrives in pieces. */
export class ContentHash {
  readonly #lanes = newLanes();
  readonly #rest = new Uint8Array(stripeBytes);
  #restBytes = 0;
  #length = 0;

  /** Adds bytes to the content. */
  update(bytes: Uint8Array): void {
    this.#length += bytes.length;
    const missing = (stripeBytes - this.#restBytes) % stripeBytes;
    const filling = bytes.subarray(0, missing);
    this.#rest.set(filling, this.#restBytes);
    this.#restBytes += filling.length;
    if (filling.length < missing) return;
    if (missing > 0) addStripes(this.#lanes, this.#rest);
    const whole = bytes.length - ((bytes.length - missing) % stripeBytes);
    addStripes(this.#lanes, bytes.subarray(missing, whole));
    this.#rest.set(bytes.subarray(whole));
    this.#restBytes = bytes.length - whole;
  }

  /** The hash of the content so far, as `hashText` writes it. `update` may follow. */
  digest(): string {
    return hashText(finishXxh64(this.#lanes, this.#length, this.#rest.subarray(0, this.#restBytes)));
  }
}

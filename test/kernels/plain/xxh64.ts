import { stripeBytes } from '../../../engine/kernels/xxh64.js';

const prime1 = 0x9e3779b185ebca87n;
const prime2 = 0xc2b2ae3d27d4eb4fn;

const [prime1Low, prime1High] = halvesOf(prime1);
const [prime2Low, prime2High] = halvesOf(prime2);

function halvesOf(value: bigint): [low: number, high: number] {
  return [Number(value & 0xffffffffn), Number(value >> 32n)];
}

/**
 * The high half of the product of two unsigned 32-bit numbers. The product as a double is wrong by some thousands at most, and the product
 * without its low half is a multiple of 2^32, so the nearest multiple is right.
 */
function highProduct(a: number, b: number, low: number): number {
  return ((a * b - low) * 2 ** -32 + 0.5) >>> 0;
}

/** Processes the whole stripes of `bytes`; the bytes behind the last whole stripe are left. */
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

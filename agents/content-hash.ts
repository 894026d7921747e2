import { createHash, type Hash } from 'node:crypto';
import { addStripes } from '../engine/kernels/simd/xxh64.js';
import { finishXxh64, newLanes, stripeBytes } from '../engine/kernels/xxh64.js';

/** SHA-256 in hexadecimal. */
export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** A hash of content that is read piece by piece. */
export interface ContentHash {
  update(bytes: Uint8Array): void;
  /** The hash of the content so far, as checkpoints have it. More may follow. */
  digest(): string;
}

const xxh64Prefix = 'xxh64:';

/** XXH64: `xxh64:` and 16 hexadecimal digits. What checkpoints have now. */
export class Xxh64Hash implements ContentHash {
  readonly #lanes = newLanes();
  readonly #rest = new Uint8Array(stripeBytes);
  #restBytes = 0;
  #length = 0;

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

  digest(): string {
    const hash = finishXxh64(this.#lanes, this.#length, this.#rest.subarray(0, this.#restBytes));
    return xxh64Prefix + hash.toString(16).padStart(16, '0');
  }
}

/** SHA-256: 64 hexadecimal digits. What checkpoints of earlier versions have. */
class Sha256Hash implements ContentHash {
  readonly #hash: Hash = createHash('sha256');

  update(bytes: Uint8Array): void {
    this.#hash.update(bytes);
  }

  digest(): string {
    return this.#hash.copy().digest('hex');
  }
}

/** Whether a checkpoint's hash is of the kind that checkpoints have now. */
export function isXxh64(contentHash: string): boolean {
  return contentHash.startsWith(xxh64Prefix);
}

/** A hash of the kind that a checkpoint has, to compare with it. */
export function hashLike(contentHash: string): ContentHash {
  return isXxh64(contentHash) ? new Xxh64Hash() : new Sha256Hash();
}

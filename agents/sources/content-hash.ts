import { createHash } from 'node:crypto';
import { addStripes, finishXxh64, newLanes, stripeBytes } from '../../engine/index.js';

/** SHA-256 in hexadecimal. */
export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
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

  /** The hash of the content so far, in the form of checkpoints: `xxh64:` and 16 hex digits. `update` may follow. */
  digest(): string {
    const hash = finishXxh64(this.#lanes, this.#length, this.#rest.subarray(0, this.#restBytes));
    return 'xxh64:' + hash.toString(16).padStart(16, '0');
  }
}

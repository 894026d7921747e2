import { rulingsKnownBytesMax } from '../../core/limits.js';
import type { Asked } from '../sealed/filter-question.js';
import type { Ruling } from '../sealed/segment-rulings.js';

/** Estimated bytes of memory for the rulings of one field of a segment, and for one key, besides their length. */
const fixedBytes = 200;

/** By the values that were asked for, the least recently asked first. */
const known = new Map<string, KnownRulings>();
let bytesKnown = 0;

/**
 * What filters have said of some values: for each place, which is a field of a segment, one ruling for each row group, `unknown` where they
 * were not asked. Segments do not change, so this stays true.
 */
export class KnownRulings {
  readonly #rulings = new Map<number, Uint8Array>();
  #bytes = 0;

  private constructor(private readonly key: string) {}

  /** What is known of values that a query asks for. Those that were asked for least recently are forgotten to bound the memory. */
  static of(asked: readonly Asked[]): KnownRulings {
    const key = asked.map(keyOf).join('');
    const found = known.get(key) ?? new KnownRulings(key);
    known.delete(key);
    known.set(key, found);
    if (found.#bytes === 0) found.#grow(key.length);
    for (const [oldest, rulings] of known) {
      if (bytesKnown <= rulingsKnownBytesMax || rulings === found) break;
      known.delete(oldest);
      bytesKnown -= rulings.#bytes;
    }
    return found;
  }

  /** What is known at a place; undefined if nothing is. */
  at(place: number): Uint8Array | undefined {
    return this.#rulings.get(place);
  }

  /** Adds what was said of a row group. `rowGroups` is the number of row groups of the segment. */
  add(place: number, rowGroups: number, rowGroup: number, said: Ruling): void {
    let rulings = this.#rulings.get(place);
    if (rulings === undefined) {
      this.#rulings.set(place, (rulings = new Uint8Array(rowGroups)));
      this.#grow(rowGroups);
    }
    rulings[rowGroup] = said;
  }

  #grow(bytes: number): void {
    this.#bytes += fixedBytes + bytes;
    // A query may go on with values that have been forgotten meanwhile.
    if (known.get(this.key) === this) bytesKnown += fixedBytes + bytes;
  }
}

function keyOf({ hash, folded }: Asked): string {
  const text = Buffer.from(folded.buffer, folded.byteOffset, folded.length).toString('latin1');
  return `${hash?.low}/${hash?.high}/${text.length}/${text}`;
}

import type { Scratch } from '../../engine/index.js';
import { type JsonKey, jsonKeys, ofLine } from './json-keys.js';
import { lineKernelsOver, type LineKernels } from './line-kernels.js';
import { bufferOverheadBytes, type LinesArea, type LineSplitter } from './line-splitter.js';

/** Upper bound of `jsonSlotsBytes`, the kernel's memory for the keys of a line. */
const slotsBytesMax = 4096;

/** Number of words that describe a key to the kernel, and the flags that are added to the number of the key's span. */
const keyWords = 4;
const isOnce = 0x8000_0000;
const isParent = 0x4000_0000;

/** Splits lines that are one JSON object each. Field i is the value of name i; after these come the objects on the paths to others. */
export class JsonLineSplitter implements LineSplitter {
  readonly fields: number;
  readonly sizeBytes: number;
  readonly #tableMask: number;
  #keysAt = 0;
  #tableAt = 0;
  #slotsAt = 0;

  readonly #keys: readonly JsonKey[];
  /** For each key, the number of its value's span. */
  readonly #spans: readonly number[];

  /** @param names distinct names; one with dots may be a path */
  constructor(names: readonly string[]) {
    const keys = jsonKeys(names);
    let fields = names.length;
    this.#keys = keys;
    this.#spans = keys.map(({ field }) => (field >= 0 ? field : fields++));
    this.fields = fields;
    let slots = 16;
    while (slots < keys.length * 4) slots *= 2;
    this.#tableMask = slots - 1;
    let size = slots * 4 + slotsBytesMax + 3 * bufferOverheadBytes;
    for (const { name } of keys) size += Buffer.byteLength(name) + keyWords * 4 + bufferOverheadBytes;
    this.sizeBytes = size;
  }

  place(scratch: Scratch): void {
    const keys = this.#keys;
    const spans = this.#spans;
    const parents = new Set(keys.map(({ parent }) => parent));
    const words = new Uint32Array(keys.length * keyWords);
    keys.forEach(({ name, parent }, number) => {
      const bytes = Buffer.from(name);
      const holder = parent === ofLine ? ofLine : spans[parent]!;
      let use = spans[number]!;
      if (parents.has(number)) use += isParent;
      // A second occurrence of such a key invalidates values of the first one's object, so such a line is decoded singly.
      if (parents.has(number) || parent !== ofLine) use += isOnce;
      words.set([scratch.copy(bytes, 0, bytes.length), bytes.length, holder, use], number * keyWords);
    });
    this.#keysAt = scratch.copy(words, 0, words.length);
    this.#tableAt = scratch.reserve((this.#tableMask + 1) * 4);
    this.#slotsAt = scratch.reserve(lineKernelsOver(scratch).jsonSlotsBytes());
    lineKernelsOver(scratch).buildKeyTable(this.#keysAt, keys.length, this.#tableAt, this.#tableMask);
  }

  split(kernels: LineKernels, area: LinesArea): number {
    return kernels.splitJsonLines(
      area.text,
      area.from,
      area.to,
      area.isText ? 1 : 0,
      this.#keysAt,
      this.#tableAt,
      this.#tableMask,
      this.#slotsAt,
      this.fields,
      area.lines,
      area.states,
      area.spans,
      area.linesMax,
    );
  }
}

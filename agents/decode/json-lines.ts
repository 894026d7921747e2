import type { Scratch } from '../../engine/index.js';
import { lineKernelsOver, type LineKernels } from './line-kernels.js';
import { bufferOverheadBytes, type LinesArea, type LineSplitter } from './line-framing.js';

/** A key to search in JSON lines. */
export interface JsonKey {
  readonly name: string;
  /** Number of the key whose object holds this one, or `ofLine`. */
  readonly parent: number;
  /** Number of the name whose value this key has; `noName` for a key whose object only contains other keys to search. */
  readonly field: number;
}

/** Parent of the keys in the line's own object. */
export const ofLine = -1;
export const noName = -1;

/**
 * The keys to search so that each name is found: as a key of the line's own object and, where it has dots, also as a path of
 * keys into nested objects. The first keys are the names themselves, in order; those of paths follow, each after its parent.
 * Keys of one object are distinct if the names are.
 */
export function jsonKeys(names: readonly string[]): readonly JsonKey[] {
  const keys = names.map((name, field) => ({ name, parent: ofLine, field }));
  const numbers = new Map(names.map((name, number) => [`${ofLine} ${name}`, number]));
  names.forEach((path, field) => {
    if (!path.includes('.')) return;
    let parent = ofLine;
    for (const name of path.split('.')) {
      const place = `${parent} ${name}`;
      let number = numbers.get(place);
      if (number === undefined) {
        number = keys.push({ name, parent, field: noName }) - 1;
        numbers.set(place, number);
      }
      parent = number;
    }
    keys[parent]!.field = field;
  });
  return keys;
}

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

  /** The names of the keys, one after another. */
  readonly #names: Uint8Array;
  /** The words that describe the keys. The address of each name counts from the first name. */
  readonly #words: Uint32Array;

  /** @param names distinct names; one with dots may be a path */
  constructor(names: readonly string[]) {
    const keys = jsonKeys(names);
    let fields = names.length;
    const spans = keys.map(({ field }) => (field >= 0 ? field : fields++));
    this.fields = fields;
    this.#names = Buffer.from(keys.map(({ name }) => name).join(''));
    this.#words = wordsOf(keys, spans);
    let slots = 16;
    while (slots < keys.length * 4) slots *= 2;
    this.#tableMask = slots - 1;
    this.sizeBytes =
      slots * 4 + slotsBytesMax + this.#names.length + this.#words.byteLength + 4 * bufferOverheadBytes;
  }

  place(scratch: Scratch): void {
    const namesAt = scratch.copy(this.#names, 0, this.#names.length);
    const words = this.#words.map((word, i) => (i % keyWords === 0 ? namesAt + word : word));
    this.#keysAt = scratch.copy(words, 0, words.length);
    this.#tableAt = scratch.reserve((this.#tableMask + 1) * 4);
    this.#slotsAt = scratch.reserve(lineKernelsOver(scratch).jsonSlotsBytes());
    lineKernelsOver(scratch).buildKeyTable(
      this.#keysAt,
      words.length / keyWords,
      this.#tableAt,
      this.#tableMask,
    );
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

/** The words that describe keys to the kernel, whose values have these spans: address and length of the name, parent, use. */
function wordsOf(keys: readonly JsonKey[], spans: readonly number[]): Uint32Array {
  const parents = new Set(keys.map(({ parent }) => parent));
  const words = new Uint32Array(keys.length * keyWords);
  let at = 0;
  keys.forEach(({ name, parent }, number) => {
    const length = Buffer.byteLength(name);
    const holder = parent === ofLine ? ofLine : spans[parent]!;
    let use = spans[number]!;
    if (parents.has(number)) use += isParent;
    // A second occurrence of such a key invalidates values of the first one's object, so such a line is decoded singly.
    if (parents.has(number) || parent !== ofLine) use += isOnce;
    words.set([at, length, holder, use], number * keyWords);
    at += length;
  });
  return words;
}

import type { Scratch } from '../../engine/memory/scratch.js';
import { lineKernelsOver, type LineKernels } from './line-kernels.js';
import { bufferOverheadBytes, type LinesArea, type LineSplitter } from './line-splitter.js';

/** More than the kernel remembers of the keys of one line. */
const slotsBytesMax = 4096;

/** Lines that are one JSON object each. Field i is the value of key i. */
export class JsonLineSplitter implements LineSplitter {
  readonly fields: number;
  readonly sizeBytes: number;
  readonly #tableMask: number;
  #keysAt = 0;
  #tableAt = 0;
  #slotsAt = 0;

  /** @param keys in UTF-8, no two alike */
  constructor(private readonly keys: readonly Uint8Array[]) {
    this.fields = keys.length;
    let slots = 16;
    while (slots < keys.length * 4) slots *= 2;
    this.#tableMask = slots - 1;
    let size = slots * 4 + slotsBytesMax + 3 * bufferOverheadBytes;
    for (const key of keys) size += key.length + 12 + bufferOverheadBytes;
    this.sizeBytes = size;
  }

  place(scratch: Scratch): void {
    const { keys } = this;
    const words = new Uint32Array(keys.length * 3);
    keys.forEach((key, field) => words.set([scratch.copy(key, 0, key.length), key.length, field], field * 3));
    this.#keysAt = scratch.copy(words, 0, words.length);
    this.#tableAt = scratch.room((this.#tableMask + 1) * 4);
    this.#slotsAt = scratch.room(lineKernelsOver(scratch).jsonSlotsBytes());
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

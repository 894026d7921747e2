import type { Scratch } from '../../engine/index.js';
import type { LineKernels } from './line-kernels.js';
import { bufferOverheadBytes, type LinesArea, type LineSplitter } from './line-splitter.js';

/** A set of bytes: 256 flags. */
export type ByteSet = Uint8Array;

/** What comes next in a line. A line is taken when the steps lead to `accept`; one that can't be taken leaves the line odd. */
export type LineStep =
  | { readonly kind: 'literal'; readonly bytes: Uint8Array }
  | { readonly kind: 'one'; readonly set: ByteSet }
  /** As many bytes of the set as there are, at least `least`. */
  | { readonly kind: 'run'; readonly set: ByteSet; readonly least: number }
  | { readonly kind: 'begin' | 'end'; readonly field: number }
  /** Goes on with the next step where the next byte is in the set, else with another. */
  | { readonly kind: 'branch'; readonly set: ByteSet; readonly otherwise: number }
  | { readonly kind: 'jump'; readonly to: number }
  | { readonly kind: 'line end' | 'accept' };

/** Steps as the kernel numbers them. */
const stepCodes = {
  literal: 0,
  one: 1,
  run: 2,
  until: 3,
  begin: 4,
  end: 5,
  'line end': 6,
  branch: 7,
  jump: 8,
  accept: 9,
} as const;

/** The kernel looks for this many bytes at once. */
const stopsMax = 3;
const lineFeed = 0x0a;
const spanBytes = 8;
const setBytes = 256;

/** Lines that are taken apart by steps, none of which is ever taken back. Steps must not lead back to themselves. */
export class DelimitedLineSplitter implements LineSplitter {
  readonly sizeBytes: number;
  #stepsAt = 0;

  constructor(
    private readonly steps: readonly LineStep[],
    readonly fields: number,
  ) {
    let size = steps.length * 16 + bufferOverheadBytes;
    for (const step of steps) {
      if (step.kind === 'literal') size += step.bytes.length + bufferOverheadBytes;
      else if ('set' in step) size += setBytes + bufferOverheadBytes;
    }
    this.sizeBytes = size;
  }

  place(scratch: Scratch): void {
    const words = new Uint32Array(this.steps.length * 4);
    this.steps.forEach((step, i) => words.set(stepWords(scratch, step), i * 4));
    this.#stepsAt = scratch.copy(words, 0, words.length);
  }

  split(kernels: LineKernels, area: LinesArea): number {
    return kernels.splitDelimitedLines(
      area.text,
      area.from,
      area.to,
      area.isText ? 1 : 0,
      this.#stepsAt,
      this.fields,
      area.lines,
      area.states,
      area.spans,
      area.linesMax,
    );
  }
}

function stepWords(scratch: Scratch, step: LineStep): number[] {
  const code = stepCodes[step.kind];
  switch (step.kind) {
    case 'literal':
      return [code, scratch.copy(step.bytes, 0, step.bytes.length), step.bytes.length];
    case 'one':
      return [code, scratch.copy(step.set, 0, setBytes)];
    case 'run': {
      const stops = stopsOf(step.set);
      return stops === null
        ? [code, scratch.copy(step.set, 0, setBytes), step.least]
        : [stepCodes.until, stops, step.least];
    }
    case 'begin':
    case 'end':
      return [code, step.field * spanBytes];
    case 'branch':
      return [code, scratch.copy(step.set, 0, setBytes), step.otherwise];
    case 'jump':
      return [code, step.to];
    case 'line end':
    case 'accept':
      return [code];
  }
}

/** The few bytes that end a run of the set, one in each byte of a word; null when they are more than the kernel looks for. */
function stopsOf(set: ByteSet): number | null {
  const stops: number[] = [];
  for (let byte = 0; byte < setBytes; byte++) if (set[byte] === 0 && byte !== lineFeed) stops.push(byte);
  if (stops.length > stopsMax) return null;
  // No line holds a line feed.
  while (stops.length < stopsMax) stops.push(stops[0] ?? lineFeed);
  return stops[0]! | (stops[1]! << 8) | (stops[2]! << 16);
}

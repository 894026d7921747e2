import type { Scratch } from '../../engine/index.js';
import type { LineKernels } from './line-kernels.js';
import { bufferOverheadBytes, type LinesArea, type LineSplitter } from './line-framing.js';

/** A set of bytes, as 256 flags. */
export type ByteSet = Uint8Array;

/** A step of matching a line. The line is taken when the steps lead to `accept`; a step that fails makes the line odd. */
export type LineStep =
  | { readonly kind: 'literal'; readonly bytes: Uint8Array }
  | { readonly kind: 'one'; readonly set: ByteSet }
  /** Takes all bytes that are in the set, at least `least`. */
  | { readonly kind: 'run'; readonly set: ByteSet; readonly least: number }
  | { readonly kind: 'begin' | 'end'; readonly field: number }
  /** Continues with the next step where the next byte is in the set, else with step `otherwise`. */
  | { readonly kind: 'branch'; readonly set: ByteSet; readonly otherwise: number }
  | { readonly kind: 'jump'; readonly to: number }
  | { readonly kind: 'line end' | 'accept' };

/** Numbers of the steps in the kernel. */
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

/** Number of different bytes that the kernel can search at once. */
const stopsMax = 3;
const lineFeed = 0x0a;
const spanBytes = 8;
const setBytes = 256;

/** Splits lines by steps without backtracking. The steps must not contain a loop. */
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

/** The few bytes that end a run of the set, one in each byte of a word; null where there are more than the kernel can search. */
function stopsOf(set: ByteSet): number | null {
  const stops: number[] = [];
  for (let byte = 0; byte < setBytes; byte++) if (set[byte] === 0 && byte !== lineFeed) stops.push(byte);
  if (stops.length > stopsMax) return null;
  // Pad with a line feed, which no line contains.
  while (stops.length < stopsMax) stops.push(stops[0] ?? lineFeed);
  return stops[0]! | (stops[1]! << 8) | (stops[2]! << 16);
}

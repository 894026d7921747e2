import type { Scratch } from '../../engine/index.js';
import type { LineKernels } from './line-kernels.js';

/** Bytes that slack and alignment add to each buffer. */
export const bufferOverheadBytes = 128;

/** Addresses of the lines and of the results in the kernels' memory. */
export interface LinesArea {
  readonly text: number;
  /** The lines to split are [text + from, text + to), followed by a line feed. */
  readonly from: number;
  readonly to: number;
  /** Whether all of the text is known to be UTF-8. */
  readonly isText: boolean;
  /** Two words per line: its beginning, and the position of its line feed. */
  readonly lines: number;
  /** One byte per line: whether it was taken. */
  readonly states: number;
  /** Two words per line and field: its beginning; its kind and length. */
  readonly spans: number;
  readonly linesMax: number;
}

/** Splits lines of one format into numbered fields. */
export interface LineSplitter {
  readonly fields: number;
  /** Upper bound of the scratch memory that `place` takes, in bytes. */
  readonly sizeBytes: number;
  /** Writes the kernel's parameters of the format to scratch memory that was just opened. */
  place(scratch: Scratch): void;
  /** Splits at least one and at most `linesMax` lines. Returns their number. */
  split(kernels: LineKernels, area: LinesArea): number;
}

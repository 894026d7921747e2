import type { Scratch } from '../../engine/index.js';
import type { LineKernels } from './line-kernels.js';

/** What slack and alignment add to each buffer. */
export const bufferOverheadBytes = 128;

/** Where lines are in the kernels' memory, and what is to become of them. */
export interface LinesArea {
  readonly text: number;
  /** The lines to split are in [text + from, text + to), behind which a line feed stands. */
  readonly from: number;
  readonly to: number;
  /** Whether all of it is known to be UTF-8. */
  readonly isText: boolean;
  /** Two words for each line: where it begins, and where its line feed stands. */
  readonly lines: number;
  /** A byte for each line: whether it was taken. */
  readonly states: number;
  /** Two words for each line and field: where it begins; its kind and length. */
  readonly spans: number;
  readonly linesMax: number;
}

/** Takes lines of one format apart into fields, which are numbered. */
export interface LineSplitter {
  readonly fields: number;
  /** Bytes of scratch memory that `place` takes at most. */
  readonly sizeBytes: number;
  /** Puts what the kernel is told about the format into the scratch memory just opened. */
  place(scratch: Scratch): void;
  /** Splits lines, at least one and at most `linesMax`. Returns how many. */
  split(kernels: LineKernels, area: LinesArea): number;
}

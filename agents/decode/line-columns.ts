import { assert, openScratchWithin, type Scratch, valueBytesMax } from '../../engine/index.js';
import { lineKernelsOver } from './line-kernels.js';
import { bufferOverheadBytes, type LineSplitter } from './line-framing.js';

/** Part of a string: the number of a field, or constant bytes. */
export type StringPiece = number | Uint8Array;

/** How a column is made of a line's numbered fields. */
export type ColumnPlan =
  | { readonly kind: 'int'; readonly field: number; readonly digitsMax: number }
  | { readonly kind: 'float'; readonly field: number }
  | { readonly kind: 'time'; readonly field: number; readonly format: keyof typeof timeFormats }
  /** Null where the line lacks the field. */
  | { readonly kind: 'string'; readonly field: number }
  /** Never null: a field that the line lacks is empty. */
  | { readonly kind: 'pieces'; readonly pieces: readonly StringPiece[] };

/** Values of one column, one row per line. Rows of lines that were not taken have any value. */
export type LinesColumn =
  | {
      readonly kind: 'int' | 'float';
      readonly halves: Int32Array;
      presence: Uint8Array | null;
      /** 1 for each line whose text can't be read as the type, which is null; null where all can be read. */
      readonly unreadable: Uint16Array | null;
    }
  | {
      readonly kind: 'string';
      readonly bytes: Uint8Array;
      readonly offsets: Uint32Array;
      presence: Uint8Array | null;
    };

/** Kind of a field in a line: absent; text; a JSON number; another JSON value; or text with escapes that are not resolved yet. */
export const SpanKind = { absent: 0, text: 1, number: 2, other: 3, escaped: 4 } as const;
export const spanKindShift = 28;
export const spanLengthMask = 0x0fff_ffff;

/** State of a line that is in the columns, and of one that is not ("odd"). */
export const lineTaken = 0;
export const lineOdd = 1;

/** Time formats, by their numbers in the kernel `readTimes`. */
const timeFormats = { rfc3339: 0, common: 1, unix: 2 } as const;

/** Limit on the text that is processed at once, so that it stays in the core's cache from kernel to kernel. */
const windowBytesMax = 512 * 1024;
/** Lower limit of a window: a smaller one takes longer to prepare than it saves. */
const windowBytesMin = 32 * 1024;
/** Limits of a batch: bytes of spans (one span per line and field), and lines, however few fields they have. */
const spansBytesMax = 4 * 1024 * 1024;
const batchLinesMax = 16 * 1024;
const batchLinesMin = 16;
const spanBytes = 8;
const lineFeed = 0x0a;
/** Addresses of a column in the kernels' memory. */
interface ColumnPlace {
  readonly plan: ColumnPlan;
  readonly values: number;
  readonly offsets: number;
  readonly presence: number;
  readonly pieces: number;
}

/**
 * Splits lines with kernels and makes columns of their fields, in batches of lines within a window of text. A line that the
 * kernels can't take is marked as odd; the decoder of single lines takes every line.
 *
 * From `open` until the last use of a batch, no other kernel may be called, because all share one memory.
 */
export class LineColumns {
  /** Number of lines of the batch. */
  count = 0;
  /** State of each line of the batch. */
  states: Uint8Array = new Uint8Array(0);
  /** Two words per line of the batch: its beginning in the window, and the position of its line feed. */
  lines: Uint32Array = new Uint32Array(0);
  /** Two words per line of the batch and field: its beginning in the window; its kind and length. */
  spans: Uint32Array = new Uint32Array(0);
  /** The columns of the plan. */
  columns: LinesColumn[] = [];
  /** Whether kernels, and memory for them, were available when a window was last opened. */
  usable = true;

  readonly #linesMax: number;
  #scratch: Scratch | null = null;
  #places: ColumnPlace[] = [];
  #unreadable: Uint16Array = new Uint16Array(0);
  #isText = false;
  #textAt = 0;
  #linesAt = 0;
  #statesAt = 0;
  #spansAt = 0;
  #unreadableAt = 0;
  /** Positions in the window. */
  #from = 0;
  #to = 0;

  constructor(
    private readonly splitter: LineSplitter,
    private readonly plans: readonly ColumnPlan[],
  ) {
    const rowBytes = Math.max(1, splitter.fields) * spanBytes;
    this.#linesMax = Math.max(batchLinesMin, Math.min(batchLinesMax, Math.floor(spansBytesMax / rowBytes)));
  }

  /**
   * Opens a window at bytes[start, …) of whole lines before `end`; the last line may lack its line feed. `isText` says that
   * all of it is UTF-8. Returns the window's end; `start` where the kernels can't take it, or not even its first line.
   */
  open(bytes: Uint8Array, start: number, end: number, isText: boolean): number {
    const { scratch, windowEnd } = this.#openWindow(bytes, start, end);
    const size = windowEnd - start;
    if (size === 0) return start;
    this.#scratch = scratch;
    this.usable = scratch !== null;
    if (scratch === null) return start;
    // The kernels scan each line up to a line feed, so the last one needs one.
    const isWhole = bytes[windowEnd - 1] === lineFeed;
    this.#textAt = isWhole ? scratch.place(bytes, start, windowEnd) : scratch.copy(bytes, start, windowEnd);
    if (!isWhole) scratch.view(this.#textAt + size, 1)[0] = lineFeed;
    this.#from = 0;
    this.#to = size;
    this.#isText = isText;
    this.splitter.place(scratch);
    const lines = this.#linesMax;
    const { fields } = this.splitter;
    this.#linesAt = scratch.reserve(lines * 8);
    this.#statesAt = scratch.reserve(lines);
    this.#spansAt = scratch.reserve(lines * fields * spanBytes);
    this.#unreadableAt = scratch.reserve(lines * 2);
    this.#unreadable = words16(scratch, this.#unreadableAt, lines);
    this.#places = this.plans.map((plan) => placeColumn(scratch, plan, size, lines));
    return windowEnd;
  }

  /** Chooses a window of whole lines and opens its scratch memory; the window is smaller where there is little memory. */
  #openWindow(
    bytes: Uint8Array,
    start: number,
    end: number,
  ): { readonly scratch: Scratch | null; readonly windowEnd: number } {
    for (let sizeMax = windowBytesMax; ; sizeMax >>= 1) {
      let windowEnd = end;
      if (end - start > sizeMax) {
        const head = bytes.subarray(start, start + sizeMax);
        windowEnd = start + head.lastIndexOf(lineFeed) + 1;
      }
      if (windowEnd === start) return { scratch: null, windowEnd };
      const scratch = openScratchWithin(this.#sizeBytes(windowEnd - start));
      if (scratch !== null || sizeMax <= windowBytesMin) return { scratch, windowEnd };
    }
  }

  /** Makes the next batch of the window. Returns false when no line is left. */
  next(): boolean {
    const scratch = this.#scratch;
    assert(scratch !== null, 'a window has been opened');
    if (this.#from >= this.#to) return false;
    const { fields } = this.splitter;
    this.count = this.splitter.split(lineKernelsOver(scratch), {
      text: this.#textAt,
      from: this.#from,
      to: this.#to,
      isText: this.#isText,
      lines: this.#linesAt,
      states: this.#statesAt,
      spans: this.#spansAt,
      linesMax: this.#linesMax,
    });
    const { count } = this;
    this.lines = words32(scratch, this.#linesAt, count * 2);
    this.#from = this.lines[count * 2 - 1]! + 1;
    this.states = scratch.view(this.#statesAt, count);
    this.spans = words32(scratch, this.#spansAt, count * fields * 2);
    this.columns = this.#places.map((place) => this.#makeColumn(scratch, place));
    return true;
  }

  #sizeBytes(textBytes: number): number {
    const { splitter, plans } = this;
    const lines = this.#linesMax;
    let size = splitter.sizeBytes + textBytes + lines * (8 + 1 + 2 + splitter.fields * spanBytes);
    size += 5 * bufferOverheadBytes;
    for (const plan of plans) size += columnBytesMax(plan, textBytes, lines);
    return size;
  }

  #makeColumn(scratch: Scratch, place: ColumnPlace): LinesColumn {
    const { plan, values, presence } = place;
    if (plan.kind === 'string' || plan.kind === 'pieces') return this.#gather(scratch, place);
    const stride = this.splitter.fields * spanBytes;
    const at = this.#spansAt + plan.field * spanBytes;
    const kernels = lineKernelsOver(scratch);
    const { count } = this;
    const [text, states] = [this.#textAt, this.#statesAt];
    let nulls: number;
    let unreadable: Uint16Array | null = null;
    if (plan.kind === 'time') {
      const format = timeFormats[plan.format];
      nulls = kernels.readTimes(text, at, stride, count, states, format, values, presence);
    } else {
      const digitsMax = plan.kind === 'int' ? plan.digitsMax : 0;
      const marks = this.#unreadable;
      const marksAt = this.#unreadableAt;
      marks.fill(0, 0, count);
      nulls = kernels.readNumbers(text, at, stride, count, states, digitsMax, values, presence, marksAt);
      // A copy, because the next column uses the same memory.
      if (nulls > 0 && marks.subarray(0, count).includes(1)) unreadable = marks.slice(0, count);
    }
    const bytes = scratch.view(values, count * 8);
    const present = nulls === 0 ? null : scratch.view(presence, count);
    return {
      kind: plan.kind === 'float' ? 'float' : 'int',
      halves: new Int32Array(bytes.buffer, bytes.byteOffset, count * 2),
      presence: present,
      unreadable,
    };
  }

  #gather(scratch: Scratch, { plan, values, offsets, presence, pieces }: ColumnPlace): LinesColumn {
    const stride = this.splitter.fields * spanBytes;
    const kernels = lineKernelsOver(scratch);
    const { count } = this;
    const [text, states, spans] = [this.#textAt, this.#statesAt, this.#spansAt];
    let nulls = 0;
    if (plan.kind === 'string') {
      const at = spans + plan.field * spanBytes;
      nulls = kernels.gatherField(text, at, stride, count, states, values, offsets, presence);
    } else if (plan.kind === 'pieces') {
      const many = plan.pieces.length;
      kernels.gatherPieces(text, spans, stride, count, states, pieces, many, valueBytesMax, values, offsets);
    }
    const ends = words32(scratch, offsets, count + 1);
    return {
      kind: 'string',
      bytes: scratch.view(values, ends[count]!),
      offsets: ends,
      presence: nulls === 0 ? null : scratch.view(presence, count),
    };
  }
}

/** Upper bound of the bytes of a column's string values; 0 for numbers. */
function stringBytesMax(plan: ColumnPlan, textBytes: number, lines: number): number {
  if (plan.kind === 'string') return textBytes;
  if (plan.kind !== 'pieces') return 0;
  let size = 0;
  for (const piece of plan.pieces) size += typeof piece === 'number' ? textBytes : piece.length * lines;
  return size;
}

function columnBytesMax(plan: ColumnPlan, textBytes: number, lines: number): number {
  const buffers = 4 * bufferOverheadBytes;
  if (plan.kind !== 'string' && plan.kind !== 'pieces') return lines * 9 + buffers;
  let size = stringBytesMax(plan, textBytes, lines) + lines * 5 + 4 + buffers;
  if (plan.kind === 'string') return size;
  for (const piece of plan.pieces) {
    size += 12 + (typeof piece === 'number' ? 0 : piece.length + bufferOverheadBytes);
  }
  return size;
}

function placeColumn(scratch: Scratch, plan: ColumnPlan, textBytes: number, lines: number): ColumnPlace {
  if (plan.kind !== 'string' && plan.kind !== 'pieces') {
    return {
      plan,
      values: scratch.reserve(lines * 8),
      offsets: 0,
      presence: scratch.reserve(lines),
      pieces: 0,
    };
  }
  const pieces = plan.kind === 'pieces' ? placePieces(scratch, plan.pieces) : 0;
  return {
    plan,
    values: scratch.reserve(stringBytesMax(plan, textBytes, lines)),
    offsets: scratch.reserve((lines + 1) * 4),
    presence: scratch.reserve(lines),
    pieces,
  };
}

function placePieces(scratch: Scratch, pieces: readonly StringPiece[]): number {
  const words = new Uint32Array(pieces.length * 3);
  pieces.forEach((piece, i) => {
    const isField = typeof piece === 'number';
    words.set(isField ? [piece, 0, 0] : [scratch.copy(piece, 0, piece.length), piece.length, 1], i * 3);
  });
  return scratch.copy(words, 0, words.length);
}

function words16(scratch: Scratch, at: number, count: number): Uint16Array {
  const { buffer, byteOffset } = scratch.view(at, count * 2);
  return new Uint16Array(buffer, byteOffset, count);
}

function words32(scratch: Scratch, at: number, count: number): Uint32Array {
  const { buffer, byteOffset } = scratch.view(at, count * 4);
  return new Uint32Array(buffer, byteOffset, count);
}

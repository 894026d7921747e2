const newline = 10;
const cursorDigits = 16;
/** Offset of the cursor in a line of JSON. */
const cursorInLine = '{"_cursor":"'.length;
const idHead = Buffer.from('id: ');
const dataHead = Buffer.from('\ndata: ');
/** Bytes that an event has besides its line. */
const bytesAround = idHead.length + cursorDigits + dataHead.length + 1;

/**
 * One or more records in the order of their positions, as bytes: either events of a stream (`id: <cursor>`, `data: <JSON>`) or plain lines
 * of JSON.
 */
export interface RecordEvents {
  readonly bytes: Buffer;
  /** Offset of the cursor within each record. */
  readonly cursorAt: number;
  /** Offset in `bytes` of the end of each record. */
  readonly ends: readonly number[];
  /** Cursors of the first and the last record. All cursors have the same length, so comparing them as texts compares positions. */
  readonly first: string;
  readonly last: string;
}

/**
 * Makes events of lines of JSON. All records that a client catches up on pass through here, so short parts are copied byte by byte: a call
 * for each would take longer.
 */
export function eventsOf(lines: Uint8Array): RecordEvents {
  const source = Buffer.from(lines.buffer, lines.byteOffset, lines.length);
  const ends = lineEndsOf(source);
  const bytes = Buffer.allocUnsafeSlow(source.length + ends.length * bytesAround);
  let at = 0;
  let from = 0;
  for (let i = 0; i < ends.length; i++) {
    const to = ends[i]!;
    for (let k = 0; k < idHead.length; k++) bytes[at++] = idHead[k]!;
    for (let k = 0; k < cursorDigits; k++) bytes[at++] = source[from + cursorInLine + k]!;
    for (let k = 0; k < dataHead.length; k++) bytes[at++] = dataHead[k]!;
    at += source.copy(bytes, at, from, to);
    bytes[at++] = newline;
    ends[i] = at;
    from = to;
  }
  return withBounds(bytes, ends, idHead.length);
}

function lineEndsOf(bytes: Buffer): number[] {
  const ends: number[] = [];
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) ends.push(at + 1);
  return ends;
}

/** Describes lines of JSON without changing them. The result uses the memory of `lines`. */
export function linesAsEvents(lines: Uint8Array): RecordEvents {
  const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.length);
  return withBounds(bytes, lineEndsOf(bytes), cursorInLine);
}

function withBounds(bytes: Buffer, ends: readonly number[], cursorAt: number): RecordEvents {
  const last = cursorFrom(bytes, (ends.at(-2) ?? 0) + cursorAt);
  return { bytes, ends, cursorAt, first: cursorFrom(bytes, cursorAt), last };
}

/** The cursor of the record with this index. */
export function cursorOf({ bytes, ends, cursorAt }: RecordEvents, index: number): string {
  return cursorFrom(bytes, startOf(ends, index) + cursorAt);
}

/** The bytes of the records from this index on, without a copy. */
export function eventsFrom({ bytes, ends }: RecordEvents, index: number): Buffer {
  return bytes.subarray(startOf(ends, index));
}

function startOf(ends: readonly number[], index: number): number {
  return index === 0 ? 0 : ends[index - 1]!;
}

function cursorFrom(bytes: Buffer, at: number): string {
  return bytes.toString('latin1', at, at + cursorDigits);
}

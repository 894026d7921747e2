const newline = 10;
const cursorDigits = 16;
/** Where the cursor stands in a line of JSON, and in an event. */
const cursorInLine = '{"_cursor":"'.length;
const idHead = Buffer.from('id: ');
const dataHead = Buffer.from('\ndata: ');
const bytesAround = idHead.length + cursorDigits + dataHead.length + 1;

/**
 * Records in the order of their positions, as events of a stream (`id: <cursor>`, `data: <JSON>`), or as the lines of JSON that they come
 * as. There is at least one.
 */
export interface RecordEvents {
  readonly bytes: Buffer;
  /** Where the cursor stands in each of them. */
  readonly cursorAt: number;
  /** Where each of them ends. */
  readonly ends: readonly number[];
  /** Cursors of the first and the last one. Cursors are of one length, so that they compare as positions do. */
  readonly first: string;
  readonly last: string;
}

/** Lines of JSON as events. All that a client catches up on goes through here: short parts are copied byte by byte, as calls take longer. */
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

/** Lines of JSON as they are. Their bytes are those that are given. */
export function linesAsEvents(lines: Uint8Array): RecordEvents {
  const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.length);
  return withBounds(bytes, lineEndsOf(bytes), cursorInLine);
}

function withBounds(bytes: Buffer, ends: readonly number[], cursorAt: number): RecordEvents {
  const last = cursorFrom(bytes, (ends.at(-2) ?? 0) + cursorAt);
  return { bytes, ends, cursorAt, first: cursorFrom(bytes, cursorAt), last };
}

/** The cursor of the event with this index. */
export function cursorOf({ bytes, ends, cursorAt }: RecordEvents, index: number): string {
  return cursorFrom(bytes, startOf(ends, index) + cursorAt);
}

/** The events from this index on, as bytes. */
export function eventsFrom({ bytes, ends }: RecordEvents, index: number): Buffer {
  return bytes.subarray(startOf(ends, index));
}

function startOf(ends: readonly number[], index: number): number {
  return index === 0 ? 0 : ends[index - 1]!;
}

function cursorFrom(bytes: Buffer, at: number): string {
  return bytes.toString('latin1', at, at + cursorDigits);
}

import fc from 'fast-check';

/** A line of a container's output, or a part of one, as a runtime writes it. */
export interface Written {
  readonly stream: 'stdout' | 'stderr';
  readonly text: string;
  readonly isPartial: boolean;
  readonly ms: number;
  readonly attrs?: Readonly<Record<string, string>>;
}

/** A record as documented. */
export interface ModelRecord {
  readonly time: string;
  readonly stream: string;
  text: string;
  /** Its lines as they lie in the file. */
  readonly raw: string[];
}

/** A time as Docker and containerd write it: nanoseconds without zeros at their end. */
export function timeOf(ms: number): string {
  return new Date(Date.UTC(2026, 10, 28) + ms)
    .toISOString()
    .replace('Z', '123456Z')
    .replace(/0+123456Z$/, '000123456Z');
}

export function dockerLine({ stream, text, isPartial, ms, attrs }: Written): string {
  const time = timeOf(ms);
  const log = isPartial ? text : `${text}\n`;
  return JSON.stringify({ log, stream, ...(attrs === undefined ? {} : { attrs }), time });
}

export function criLine({ stream, text, isPartial, ms }: Written): string {
  return `${timeOf(ms)} ${stream} ${isPartial ? 'P' : 'F'} ${text}`;
}

const texts = [
  '10 a',
  '11 "quoted" \\ back',
  '12 é🦊',
  '  at x',
  '\tat y.z(Y.java:1)',
  '',
  '13 \u001b[32mgreen\u001b[0m',
  'no start',
  '14 return\r',
  '15 stdout F P","stream":"stderr"',
];

/** Lines of two streams, some in parts, some so late that the record before is over, some of them no lines of a container. */
export const writtenOf: fc.Arbitrary<(Written | string)[]> = fc
  .array(
    fc.oneof(
      {
        weight: 12,
        arbitrary: fc.record({
          stream: fc.constantFrom('stdout', 'stderr'),
          text: fc.constantFrom(...texts),
          isPartial: fc.constantFrom(false, false, true),
          ms: fc.constantFrom(0, 1, 3, 20, 700, 999, 1000, 5000, -2000),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom('garbage', '', '{"log":"x"', '2026-11-28T05:00:00Z stdin F x', '  '),
      },
    ),
    { maxLength: 40 },
  )
  .map((lines) => {
    let ms = 18_000_000;
    return lines.map((line) => (typeof line === 'string' ? line : { ...line, ms: (ms += line.ms) })) as (
      Written | string
    )[];
  });

/** Lines as they lie in a file. With `endsInLine` the last one lacks its line end. */
export function contentOf(
  lines: readonly (Written | string)[],
  write: (written: Written) => string,
  endsInLine: boolean,
): Buffer {
  const all = lines.map((line) => (typeof line === 'string' ? line : write(line))).join('\n');
  return Buffer.from(endsInLine || lines.length === 0 ? all : `${all}\n`);
}

/** The records of lines, and the lines that are none, by the documentation: the naive model. */
export function modelRecords(
  lines: readonly (Written | string)[],
  write: (written: Written) => string,
  multiline?: { start: string; linesMax: number; bytesMax: number },
  timeoutMs = 1000,
): { records: ModelRecord[]; others: string[] } {
  interface Open extends ModelRecord {
    lastMs: number;
    isPartial: boolean;
    bytes: number;
  }
  const records: ModelRecord[] = [];
  const others = lines.filter((line) => typeof line === 'string');
  const open = new Map<string, Open>();
  for (const line of lines) {
    if (typeof line === 'string') continue;
    const { stream, text, isPartial, ms } = line;
    const raw = write(line);
    const bytes = Buffer.byteLength(raw) + 1;
    for (const [name, { lastMs }] of open) if (ms - lastMs >= timeoutMs) open.delete(name);
    let own = open.get(stream);
    if (own !== undefined && !own.isPartial) {
      const begins = new RegExp(multiline!.start).test(text.replace(/\r$/, ''));
      if (begins || own.raw.length >= multiline!.linesMax || own.bytes + bytes - 1 > multiline!.bytesMax)
        own = undefined;
    }
    if (own === undefined) {
      own = { time: timeOf(ms), stream, text: '', raw: [], lastMs: ms, isPartial, bytes: 0 };
      records.push(own);
      open.set(stream, own);
    }
    own.raw.push(raw);
    own.text += isPartial ? text : `${text.replace(/\r$/, '')}\n`;
    own.lastMs = ms;
    own.isPartial = isPartial;
    own.bytes += bytes;
    if (!isPartial && multiline === undefined) open.delete(stream);
  }
  for (const record of records)
    record.text =
      multiline === undefined
        ? record.text.replace(/\n$/, '')
        : record.text
            .replaceAll('\r\n', '\n')
            .replace(/\r$/, '')
            .replace(/^\n+|\n+$/g, '');
  return { records, others: others.filter((line) => line.trim() !== '') };
}

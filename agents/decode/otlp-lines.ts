import { isUtf8 } from 'node:buffer';
import { fieldTextBytesMax, repairUtf8 } from '../../engine/index.js';
import { JsonLineParser } from './json-decoder.js';
import { JsonScanner, openBracket } from './json-scanner.js';
import { objectsOfLine } from './json-values.js';
import type { TextRange } from './line-framing.js';
import { expectedAt, skipSpace } from './line-text.js';
import type { ParsedLine } from './parsed-line.js';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

type Members = Readonly<Record<string, unknown>>;

/**
 * Parses lines of OpenTelemetry's log data as JSON (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding), each of
 * which has log records of several resources and scopes. A log record becomes an object with its parts as keys, and that is
 * parsed as a line of JSON. An array of one such object is a line too: a rejected record is kept so.
 */
export class OtlpLineParser extends JsonLineParser {
  readonly #wanted: ReadonlySet<string>;
  readonly #wantsBody: boolean;
  readonly #scan = new JsonScanner();
  /** The objects of the last line, and what was replaced in it. */
  #objects: Uint8Array = new Uint8Array(0);
  #replaced = 0;

  /** @param names wanted parts, in the order of the `ParsedLine` */
  constructor(names: readonly string[]) {
    super(names);
    this.#wanted = new Set(names);
    this.#wantsBody = names.some((name) => name === 'body' || name.startsWith('body.'));
  }

  override parse(
    bytes: Uint8Array,
    start: number,
    end: number,
    isText: boolean,
    line: ParsedLine,
  ): string | null {
    if (bytes !== this.#objects) return 'is not a log record by itself';
    const problem = super.parse(bytes, start + 1, end - 1, isText, line);
    line.repairs += this.#replaced;
    this.#replaced = 0;
    return problem;
  }

  override several(bytes: Uint8Array, start: number, end: number): readonly TextRange[] | string | null {
    if (bytes[start] === openBracket) {
      if (objectsOfLine(bytes, start, end)?.length !== 1) return null;
      this.#objects = bytes.slice(start, end);
      return [{ bytes: this.#objects, start: 0, end: end - start }];
    }
    const at = skipSpace(bytes, start, end);
    const valueEnd = this.#scan.value(bytes, at, end, 0);
    if (valueEnd < 0 || skipSpace(bytes, valueEnd, end) < end) {
      if (valueEnd >= 0) this.#scan.fail(skipSpace(bytes, valueEnd, end), 'nothing after the object');
      return `is not OTLP JSON: ${expectedAt(bytes, start, end, this.#scan.failedAt, this.#scan.expected)}`;
    }
    const repaired = isUtf8(bytes.subarray(start, end)) ? null : repairUtf8(bytes, start, end);
    this.#replaced = repaired?.replacedAt.length ?? 0;
    let value: unknown;
    try {
      value = JSON.parse(decoder.decode(repaired?.bytes ?? bytes.subarray(start, end)));
    } catch {
      return 'is not OTLP JSON: it has an escape or a number that JSON does not have';
    }
    const data = membersOf(value);
    if (!Array.isArray(data['resourceLogs']))
      return 'is not OTLP JSON with logs: it has no array "resourceLogs"';
    return this.#ranges(
      logRecords(data, (name) => this.#wanted.has(name) || (name === 'body' && this.#wantsBody)),
    );
  }

  #ranges(records: Iterable<Members>): readonly TextRange[] | string {
    const places: number[] = [0];
    const texts: Uint8Array[] = [];
    let size = 0;
    for (const record of records) {
      const text = Buffer.from(JSON.stringify([record]));
      size += text.length;
      if (size > fieldTextBytesMax)
        return `has more than ${fieldTextBytesMax} bytes of text in the fields of its records`;
      texts.push(text);
      places.push(size);
    }
    const objects = Buffer.concat(texts);
    this.#objects = objects;
    return texts.map((_, i) => ({ bytes: objects, start: places[i]!, end: places[i + 1]! }));
  }
}

/** The first log record of a line that the parser accepts, with all of its parts, as a line of JSON. */
export function firstLogRecord(bytes: Uint8Array): Uint8Array {
  const value: unknown = JSON.parse(decoder.decode(bytes));
  const records = Array.isArray(value) ? listOf(value) : logRecords(membersOf(value), () => true);
  for (const record of records) return Buffer.from(JSON.stringify(record));
  return bytes;
}

/** The log records of OTLP data, each with the parts that `wants`. Empty texts and what is not there are left out. */
function* logRecords(data: Members, wants: (name: string) => boolean): Generator<Members> {
  for (const ofResource of listOf(data['resourceLogs'])) {
    const resource = attributesOf('resource.', membersOf(ofResource['resource']), wants);
    for (const ofScope of listOf(ofResource['scopeLogs'])) {
      const scope = membersOf(ofScope['scope']);
      for (const record of listOf(ofScope['logRecords'])) {
        const time = nanoseconds(record['timeUnixNano']);
        const observed = nanoseconds(record['observedTimeUnixNano']);
        const parts: Members = {
          time: milliseconds(time ?? observed),
          time_unix_nano: time,
          observed_time: milliseconds(observed),
          observed_time_unix_nano: observed,
          severity_text: record['severityText'],
          severity_number: record['severityNumber'],
          body: plainValue(record['body']),
          trace_id: record['traceId'],
          span_id: record['spanId'],
          event_name: record['eventName'],
          'scope.name': scope['name'],
          'scope.version': scope['version'],
        };
        const found = Object.entries(parts).filter(
          ([name, part]) => part !== undefined && part !== '' && wants(name),
        );
        yield { ...resource, ...attributesOf('attributes.', record, wants), ...Object.fromEntries(found) };
      }
    }
  }
}

/** The attributes of an object as parts, whose names begin with `prefix`. Of a key that occurs twice, the last counts. */
function attributesOf(prefix: string, { attributes }: Members, wants: (name: string) => boolean): Members {
  const parts: [string, unknown][] = [];
  for (const { key, value } of listOf(attributes)) {
    const name = `${prefix}${String(key)}`;
    if (wants(name)) parts.push([name, plainValue(value)]);
  }
  return Object.fromEntries(parts);
}

/** Nanoseconds since the epoch as digits; undefined for none, which is also written as 0. */
function nanoseconds(value: unknown): string | undefined {
  const text = typeof value === 'number' || typeof value === 'string' ? String(value) : '';
  return /^[1-9]\d*$/.test(text) ? text : undefined;
}

function milliseconds(nanoseconds: string | undefined): string | undefined {
  return nanoseconds === undefined ? undefined : nanoseconds.slice(0, -6) || '0';
}

/** An `AnyValue` as the JSON value that it stands for. Its depth is that of the line, which is bounded. */
function plainValue(value: unknown): unknown {
  const { stringValue, boolValue, intValue, doubleValue, bytesValue, arrayValue, kvlistValue } =
    membersOf(value);
  if (arrayValue !== undefined) return listOf(membersOf(arrayValue)['values']).map(plainValue);
  if (kvlistValue === undefined) return stringValue ?? boolValue ?? intValue ?? doubleValue ?? bytesValue;
  return Object.fromEntries(
    listOf(membersOf(kvlistValue)['values']).map((each) => [String(each['key']), plainValue(each['value'])]),
  );
}

/** The members of an object; none for any other value. */
function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {};
}

/** The objects of a list; none for any other value. */
function listOf(value: unknown): readonly Members[] {
  return Array.isArray(value) ? value.map(membersOf) : [];
}

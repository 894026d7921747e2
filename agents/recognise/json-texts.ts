import {
  type Candidate,
  type CandidateField,
  type SampleLine,
  FieldNames,
  sampleLine,
  typeOfTexts,
} from './field-names.js';

/** The objects in a text of JSON, whatever its lines. */
interface JsonTexts {
  readonly lines: readonly SampleLine[];
  /** The key whose array holds them. */
  readonly records?: string;
}

/**
 * The objects of values that are not one a line: objects or elements of arrays that lie over lines or share one, or the
 * elements of an array at a key of the only object. Undefined where each line is an object.
 */
export function jsonTexts(lines: readonly SampleLine[]): JsonTexts | undefined {
  if (!/^\s*[[{]/.test(lines[0]?.text ?? '')) return undefined;
  const all = lines.map(({ text }) => text).join('\n');
  const objects = objectsOf(all);
  // The sample may end before the object does.
  const inner =
    objects.length === 0 ? cutRecords(all) : objects.length === 1 ? innerRecords(objects[0]!) : undefined;
  if (inner !== undefined) return inner;
  const begun = lines.filter(({ text }) => /^\{.*\}\s*$/s.test(text)).length;
  if (objects.length === 0 || begun >= objects.length) return undefined;
  return { lines: objects.map(sampleLine) };
}

/** Texts of the objects in a text that are in no other object. */
function objectsOf(text: string): string[] {
  const found: string[] = [];
  let depth = 0;
  let start = 0;
  let inQuotes = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (inQuotes) {
      if (character === '\\') at++;
      else if (character === '"') inQuotes = false;
    } else if (character === '"') inQuotes = depth > 0;
    else if (character === '{') {
      if (depth === 0) start = at;
      depth++;
    } else if (character === '}' && depth > 0) {
      depth--;
      if (depth === 0) found.push(text.slice(start, at + 1));
    }
  }
  return found;
}

/** The records of an object that begins with their array, as far as they are there. */
function cutRecords(text: string): JsonTexts | undefined {
  const [begin, records] = /^\s*\{\s*"([^"\\.]+)"\s*:\s*\[/.exec(text) ?? [];
  if (begin === undefined || records === 'resourceLogs') return undefined;
  const objects = objectsOf(text.slice(begin.length));
  return objects.length === 0 ? undefined : { records: records!, lines: objects.map(sampleLine) };
}

function innerRecords(text: string): JsonTexts | undefined {
  const object = parsedObject(text);
  const arrays = Object.entries(object ?? {}).filter(
    (entry): entry is [string, object[]] =>
      Array.isArray(entry[1]) &&
      entry[1].length > 0 &&
      entry[1].every((each) => typeof each === 'object' && each !== null && !Array.isArray(each)),
  );
  if (arrays.length !== 1 || arrays[0]![0] === 'resourceLogs' || arrays[0]![0].includes('.'))
    return undefined;
  const [records, elements] = arrays[0]!;
  return { records, lines: elements.map((element) => sampleLine(JSON.stringify(element))) };
}

function parsedObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

interface OtlpAttribute {
  readonly key: string;
  readonly value?: Readonly<Record<string, unknown>>;
}

interface OtlpLogs {
  readonly resourceLogs: readonly {
    readonly resource?: { readonly attributes?: readonly OtlpAttribute[] };
    readonly scopeLogs?: readonly {
      readonly logRecords?: readonly { readonly attributes?: readonly OtlpAttribute[] }[];
    }[];
  }[];
}

/** The type of an attribute's value. */
function typeOfValue([key, value]: readonly [string, unknown]): CandidateField['type'] {
  if (key === 'doubleValue') return 'float';
  return key === 'intValue' || key === 'boolValue' ? typeOfTexts([String(value)]) : 'string';
}

/** Limit on the attributes that become fields. */
const attributesMax = 150;

/** The candidate for lines of OTLP JSON; undefined where not all lines are. */
export function otlpCandidate(lines: readonly SampleLine[]): Candidate | undefined {
  if (lines.length === 0 || !lines.every(({ text }) => /^\s*\{\s*"resourceLogs"\s*:/.test(text)))
    return undefined;
  const names = new FieldNames();
  const fields: CandidateField[] = [
    { name: names.take('time'), type: 'time' },
    { name: names.take('level'), type: 'string', source: 'severity_text' },
    { name: names.take('severity_number'), type: 'int' },
    { name: names.take('message'), type: 'string', source: 'body' },
    { name: names.take('trace_id'), type: 'string' },
    { name: names.take('span_id'), type: 'string' },
    { name: names.take('scope_name'), type: 'string', source: 'scope.name' },
  ];
  const types = new Map<string, CandidateField['type']>();
  const add = (prefix: string, attributes: readonly OtlpAttribute[] = []): void => {
    for (const { key, value } of attributes) {
      const part = `${prefix}.${key}`;
      const type = typeOfValue(Object.entries(value ?? {})[0] ?? ['', null]);
      types.set(part, (types.get(part) ?? type) === type ? type : 'string');
    }
  };
  for (const { text } of lines) {
    const logs = parsedObject(text) as OtlpLogs | undefined;
    for (const { resource, scopeLogs = [] } of logs?.resourceLogs ?? []) {
      add('resource', resource?.attributes);
      for (const { logRecords = [] } of scopeLogs)
        for (const { attributes } of logRecords) add('attributes', attributes);
    }
  }
  for (const [source, type] of [...types].slice(0, attributesMax))
    fields.push({ name: names.nameFor(source.replace(/^attributes\./, '')), type, source });
  return { title: "OpenTelemetry's log records", format: 'otlp', fields };
}

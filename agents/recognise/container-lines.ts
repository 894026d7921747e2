import {
  type Candidate,
  type CandidateField,
  type SampleLine,
  FieldNames,
  sampleLine,
} from './field-names.js';
import { partOf } from './json-dialects.js';

/** Minimum share of the lines that must be those of a container. */
const shareMin = 0.9;

const criLine = /^\d{4}-\d{2}-\d{2}T[\d:.]+(?:Z|[+-]\d{2}:\d{2}) (stdout|stderr) ([FP])\S*(?: (.*))?$/s;

interface ContainerText {
  readonly stream: string;
  /** Text of a line, or of a part of one, which then lacks the line end. */
  readonly text: string;
  readonly attributes?: object;
}

/** What containers wrote, in lines of Docker's json-file or of CRI. */
export interface ContainerTexts {
  readonly format: 'docker' | 'cri';
  /** The lines, those of each stream in their order. */
  readonly lines: readonly SampleLine[];
  /** Names of what Docker adds. */
  readonly attributes: readonly string[];
}

/** The texts in lines of containers; undefined where too few are such lines. */
export function containerTexts(lines: readonly SampleLine[]): ContainerTexts | undefined {
  for (const format of ['docker', 'cri'] as const) {
    const read = format === 'docker' ? dockerText : criText;
    const texts = lines.map(({ text }) => read(text)).filter((each) => each !== undefined);
    if (texts.length === 0 || texts.length < lines.length * shareMin) continue;
    const joined = ['stdout', 'stderr'].flatMap((stream) =>
      texts
        .filter((each) => each.stream === stream)
        .map(({ text }) => text)
        .join('')
        .split('\n'),
    );
    return {
      format,
      lines: joined.filter((text) => text.trim() !== '').map(sampleLine),
      attributes: [...new Set(texts.flatMap(({ attributes }) => Object.keys(attributes ?? {})))],
    };
  }
  return undefined;
}

function dockerText(line: string): ContainerText | undefined {
  if (!line.startsWith('{"log":')) return undefined;
  try {
    const { log, stream, attrs } = JSON.parse(line) as Record<string, unknown>;
    if (typeof log !== 'string' || typeof stream !== 'string') return undefined;
    return {
      text: log,
      stream,
      ...(typeof attrs === 'object' && attrs !== null ? { attributes: attrs } : {}),
    };
  } catch {
    return undefined;
  }
}

function criText(line: string): ContainerText | undefined {
  const found = criLine.exec(line);
  if (found === null) return undefined;
  const text = found[3] ?? '';
  return { stream: found[1]!, text: found[2] === 'P' ? text : `${text}\n` };
}

const wholeText = 'container.text';

/**
 * The candidate for lines of containers: the fields of what they wrote, and those of the container. A record has the time at
 * which it was written, and its own as `logged_at`. A text in another format becomes a record with it as message.
 *
 * @param written the best candidate for the texts; undefined where none has a format
 */
export function containerCandidate(
  { format, attributes }: ContainerTexts,
  written: Candidate | undefined,
): Candidate {
  const names = new FieldNames();
  const fields: CandidateField[] = [
    { name: names.take('time'), type: 'time', source: 'container.time', timestamp: { format: 'rfc3339' } },
    { name: names.take('stream'), type: 'string', source: 'container.stream' },
  ];
  const plain = written?.isLastResort === true ? undefined : written;
  const payload =
    plain !== undefined && ['plain', 'json', 'logfmt'].includes(plain.format) ? plain : undefined;
  for (const field of payload?.fields ?? []) fields.push(fieldOfPayload(field, names));
  if (!fields.some(({ name }) => name === 'message'))
    fields.push({ name: names.take('message'), type: 'string', source: wholeText });
  for (const key of attributes)
    fields.push({ name: names.nameFor(`attrs.${key}`), type: 'string', source: `container.attrs.${key}` });
  const program = format === 'docker' ? 'Docker' : 'CRI';
  return {
    title: `${program}: ${payload?.title ?? 'lines of text'}`,
    format,
    fields,
    ...(payload === undefined ? {} : { payload: payload.format as 'plain' | 'json' | 'logfmt' }),
    ...(payload?.regex === undefined ? {} : { regex: payload.regex }),
    ...(payload?.start === undefined ? {} : { start: payload.start }),
  };
}

function fieldOfPayload(field: CandidateField, names: FieldNames): CandidateField {
  const { name, type, template } = field;
  const source = field.source ?? name;
  if (name === 'message' && type === 'string') {
    const own = template === undefined ? partOf(source) : undefined;
    return {
      name: names.take(name),
      type,
      template: own === undefined ? template! : `{{or ${own} ${partOf(wholeText)}}}`,
    };
  }
  const known = names.take(name === 'time' ? 'logged_at' : name);
  return { ...field, name: known, ...(template === undefined ? { source } : {}) };
}

import {
  configBytesMax,
  fileSystemError,
  hasSystemCode,
  LogstrataError,
  nearName,
  readBounded,
} from '../../engine/index.js';
import { byteSizeShape, parseByteSize } from './byte-size.js';
import { ConfigError, type ConfigProblem } from './config-error.js';
import { durationShape, parseDuration } from './duration.js';
import { parseYaml, type Place, type YamlEntry, type YamlNode } from './yaml.js';

/** Collects the problems of one file, so that all are reported at once. */
export class ProblemList {
  readonly file: string;
  readonly #problems: ConfigProblem[] = [];

  constructor(file: string) {
    this.file = file;
  }

  /** Adds a problem at a position of the file. */
  add(place: Place, message: string): void {
    this.#problems.push({ file: this.file, line: place.line, column: place.column, message });
  }

  /** Throws a `ConfigError` with the problems in the order of the file, if there are any. */
  throwIfAny(): void {
    if (this.#problems.length === 0) return;
    throw new ConfigError(this.#problems.toSorted((a, b) => a.line - b.line || a.column - b.column));
  }
}

/**
 * Reads a text file. Throws `not_found`, `io`, or a `ConfigError` if it is too large or not UTF-8.
 *
 * @param waits as for `readBounded`
 */
export function readConfigText(path: string, waits = false): string {
  let bytes: Buffer;
  try {
    bytes = readBounded(path, configBytesMax, waits);
  } catch (cause) {
    if (hasSystemCode(cause, 'ENOENT')) {
      throw new LogstrataError('not_found', `the configuration file ${path} is not there`, { path, cause });
    }
    throw fileSystemError(cause, 'read the configuration file', path);
  }
  const problems = new ProblemList(path);
  if (bytes.length > configBytesMax) {
    problems.add(
      { line: 1, column: 1 },
      `the file has more than ${configBytesMax} bytes, the maximum for a configuration`,
    );
    problems.throwIfAny();
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    problems.add({ line: 1, column: 1 }, 'the file is not UTF-8');
    problems.throwIfAny();
    throw new LogstrataError('invalid', `${path} is not UTF-8`, { path });
  }
}

/** The top-level mapping of a YAML text. An empty file is an empty mapping. Mistakes are added to `problems`. */
export function readRootSection(
  text: string,
  problems: ProblemList,
  keys: readonly string[],
): YamlSection | undefined {
  const { root, mistakes } = parseYaml(text);
  for (const mistake of mistakes) problems.add(mistake, mistake.message);
  if (root === undefined && mistakes.length > 0) return undefined;
  return makeSection(
    root ?? { kind: 'mapping', entries: [], line: 1, column: 1 },
    'the file',
    keys,
    problems,
  );
}

function isNull(node: YamlNode): boolean {
  return node.kind === 'scalar' && node.plain && /^(?:|~|null|Null|NULL)$/.test(node.text);
}

function makeSection(
  node: YamlNode,
  what: string,
  keys: readonly string[],
  problems: ProblemList,
): YamlSection | undefined {
  if (isNull(node)) return new YamlSection(new Map(), node, problems);
  if (node.kind !== 'mapping') {
    problems.add(node, `${what} must be a mapping with ${joinNames(keys, 'and')}, not ${describe(node)}`);
    return undefined;
  }
  const entries = new Map<string, YamlEntry>();
  for (const entry of node.entries) {
    if (keys.includes(entry.key)) entries.set(entry.key, entry);
    else
      problems.add(
        entry,
        `unknown key "${entry.key}"${meantName(entry.key, keys)}: ${what} has ${joinNames(keys, 'and')}`,
      );
  }
  return new YamlSection(entries, node, problems);
}

/** Keys that other programs have, and the key for the same thing here. */
const otherNames = new Map([
  ['address', 'listen'],
  ['bind', 'listen'],
  ['host', 'listen'],
  ['port', 'listen'],
  ['console_port', 'console'],
  ['files', 'path'],
  ['glob', 'path'],
  ['pattern', 'path'],
]);

/** As `nearName`, for names of other programs as well. */
function meantName(key: string, keys: readonly string[]): string {
  const other = otherNames.get(key);
  return other !== undefined && keys.includes(other) ? ` (did you mean "${other}"?)` : nearName(key, keys);
}

function booleanOf(text: string): boolean | undefined {
  if (/^(?:true|yes|on)$/i.test(text)) return true;
  return /^(?:false|no|off)$/i.test(text) ? false : undefined;
}

/** Joins names as in `a, b and c`. */
export function joinNames(names: readonly string[], word: string): string {
  if (names.length < 2) return names.join('');
  return `${names.slice(0, -1).join(', ')} ${word} ${names.at(-1)!}`;
}

function describe(node: YamlNode): string {
  if (node.kind === 'scalar') return node.text === '' ? 'nothing' : JSON.stringify(node.text);
  return node.kind === 'sequence' ? 'a list' : 'a mapping';
}

/** An inclusive range of numbers. */
export interface NumberRange {
  readonly min: number;
  readonly max: number;
}

/**
 * A mapping of a configuration file. A getter returns the value of a key; undefined where the key is missing, null or
 * invalid. An invalid value is added to the list of problems with its position, and reading continues.
 */
export class YamlSection {
  readonly place: Place;
  readonly #entries: ReadonlyMap<string, YamlEntry>;
  readonly #problems: ProblemList;

  constructor(entries: ReadonlyMap<string, YamlEntry>, place: Place, problems: ProblemList) {
    this.place = place;
    this.#entries = entries;
    this.#problems = problems;
  }

  /** Whether the key has a value, valid or not. */
  has(key: string): boolean {
    return this.#valueOf(key) !== undefined;
  }

  /** Position of the value; without a value, that of the section. */
  placeOf(key: string): Place {
    return this.#entries.get(key)?.value ?? this.place;
  }

  /** Adds a problem at a position of the file. */
  problem(place: Place, message: string): void {
    this.#problems.add(place, message);
  }

  /** Reports a missing key that is required. */
  missing(key: string, message: string): void {
    // Report it at the key, if that is there without a value; else at the section.
    this.#problems.add(this.#entries.get(key) ?? this.place, `${key} is missing: ${message}`);
  }

  /** A scalar as written, whether YAML takes it as a string, a number or a date. */
  text(key: string): string | undefined {
    const node = this.#valueOf(key);
    if (node === undefined) return undefined;
    if (node.kind === 'scalar') return node.text;
    this.#problems.add(node, `${key} must be a text, not ${describe(node)}`);
    return undefined;
  }

  /** A text that `read` can parse; `shape` describes valid texts. */
  parsed<T>(key: string, shape: string, read: (text: string) => T | undefined): T | undefined {
    const text = this.text(key);
    if (text === undefined) return undefined;
    const value = read(text);
    if (value === undefined)
      this.#problems.add(this.placeOf(key), `${key} must be ${shape}, not ${JSON.stringify(text)}`);
    return value;
  }

  /** One of `names`, in any case. */
  oneOf<T extends string>(key: string, names: readonly T[]): T | undefined {
    const text = this.text(key);
    if (text === undefined) return undefined;
    const found = names.find((name) => name === text.toLowerCase());
    if (found === undefined) {
      const message = `${key} must be ${joinNames(names, 'or')}, not ${JSON.stringify(text)}${nearName(text, names)}`;
      this.#problems.add(this.placeOf(key), message);
    }
    return found;
  }

  /** True or false; also yes, no, on and off. */
  boolean(key: string): boolean | undefined {
    return this.parsed(key, 'true or false', booleanOf);
  }

  /** True or false, or one of `names`. */
  booleanOr<T extends string>(key: string, names: readonly T[]): boolean | T | undefined {
    return this.parsed(
      key,
      joinNames(['true', 'false', ...names], 'or'),
      (text) => names.find((name) => name === text.toLowerCase()) ?? booleanOf(text),
    );
  }

  /** An integer within a range; digits may be grouped by underscores. */
  integer(key: string, range: NumberRange): number | undefined {
    return this.parsed(key, `a whole number from ${range.min} to ${range.max}`, (text) => {
      const value = /^[+-]?\d[\d_]*$/.test(text) ? Number(text.replaceAll('_', '')) : NaN;
      return value >= range.min && value <= range.max ? value : undefined;
    });
  }

  /** A duration in milliseconds, at least `minMs`. */
  duration(key: string, minMs: number): number | undefined {
    const shape = minMs > 0 ? `${durationShape}, longer than 0` : durationShape;
    return this.parsed(key, shape, (text) => {
      const durationMs = parseDuration(text);
      return durationMs !== undefined && durationMs >= minMs ? durationMs : undefined;
    });
  }

  /** A size in bytes, greater than 0. */
  byteSize(key: string): number | undefined {
    return this.parsed(key, `${byteSizeShape}, more than 0`, (text) => parseByteSize(text) || undefined);
  }

  /** The mapping under a key. */
  section(key: string, keys: readonly string[]): YamlSection | undefined {
    const node = this.#valueOf(key);
    return node === undefined ? undefined : makeSection(node, key, keys, this.#problems);
  }

  /** The mappings in the list under a key; `what` is the name of one of them in messages. */
  sections(key: string, what: string, keys: readonly string[]): readonly YamlSection[] | undefined {
    const node = this.#valueOf(key);
    if (node === undefined) return undefined;
    if (node.kind !== 'sequence') {
      this.#problems.add(node, `${key} must be a list, not ${describe(node)}`);
      return undefined;
    }
    return node.items.flatMap((item) => makeSection(item, what, keys, this.#problems) ?? []);
  }

  /** One text or a list of texts. */
  texts(key: string): readonly string[] | undefined {
    const node = this.#valueOf(key);
    if (node === undefined) return undefined;
    const items = node.kind === 'sequence' ? node.items : [node];
    return items.flatMap((item) => {
      if (item.kind === 'scalar') return [item.text];
      this.#problems.add(item, `${key} must be a text or a list of texts, not ${describe(item)}`);
      return [];
    });
  }

  #valueOf(key: string): YamlNode | undefined {
    const value = this.#entries.get(key)?.value;
    return value === undefined || isNull(value) ? undefined : value;
  }
}

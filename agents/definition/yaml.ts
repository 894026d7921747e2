import { dirname, resolve } from 'node:path';
import { EVENT_ID, getScalarValue, parseEvents, SCALAR_STYLE, YAMLException, type Event } from 'js-yaml';
import {
  configBytesMax,
  firstIndex,
  fileSystemError,
  hasSystemCode,
  LogstrataError,
  nearName,
  readBounded,
} from '../../engine/index.js';
import { byteSizeShape, parseByteSize, durationShape, parseDuration, within } from './quantities.js';
import { ConfigError, type ConfigProblem } from './config-error.js';

/** A position in a file; line and column count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** A scalar value. */
export interface YamlScalar extends Place {
  readonly kind: 'scalar';
  /** As written in the file: `1_000` and `0x1F` stay these texts, whatever YAML would convert them to. */
  readonly text: string;
  /** Whether it is neither quoted nor a block scalar; only plain scalars can be null. */
  readonly plain: boolean;
}

/** A list. */
export interface YamlSequence extends Place {
  readonly kind: 'sequence';
  readonly items: readonly YamlNode[];
}

/** An entry of a mapping; its position is that of the key. */
interface YamlEntry extends Place {
  readonly key: string;
  readonly value: YamlNode;
}

/** A mapping. */
export interface YamlMapping extends Place {
  readonly kind: 'mapping';
  /** In the order of the file, with distinct keys. */
  readonly entries: readonly YamlEntry[];
}

type YamlNode = YamlScalar | YamlSequence | YamlMapping;

/** A mistake in a YAML text. */
export interface YamlMistake extends Place {
  readonly message: string;
}

/** Result of parsing a YAML text. */
export interface YamlFile {
  /** Undefined for an empty file, and for one that can't be parsed. */
  readonly root: YamlNode | undefined;
  readonly mistakes: readonly YamlMistake[];
}

/** Limit on nesting, to protect the stack; no configuration nests deeper. */
const depthMax = 50;

/** Tags that do not change the meaning here. Other tags ask for conversions that are not supported. */
const tagsAllowed =
  /^(?:!|!!(?:str|int|float|bool|null|map|seq)|!<tag:yaml\.org,2002:(?:str|int|float|bool|null|map|seq)>)$/;

/** The usual mistake of a pattern in double quotes: `"\d"`. */
const quotesReason =
  'in double quotes a backslash begins a YAML escape, and this is not a valid one: put patterns into single quotes';

/** Clearer messages for reasons of js-yaml that name a rule of YAML but not the actual or most likely mistake. */
const plainerReasons: ReadonlyMap<string, string> = new Map([
  ['unknown escape sequence', quotesReason],
  ['expected hexadecimal character', quotesReason],
  [
    'deficient indentation',
    'a bracket or a quotation mark above this line is not closed, or this line is not indented',
  ],
]);

/**
 * Parses one YAML document into nodes with positions. js-yaml's own constructor would convert texts to numbers and drop the
 * positions. A syntax error ends the parsing; duplicate keys and similar mistakes are all reported.
 */
function parseYaml(source: string): YamlFile {
  const text = source.replace(/^\ufeff/, '');
  const places = new Places(text);
  let events: Event[];
  try {
    events = parseEvents(text, { maxDepth: depthMax });
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const place = { line: (error.mark?.line ?? 0) + 1, column: (error.mark?.column ?? 0) + 1 };
    const reason = plainerReasons.get(error.reason) ?? error.reason;
    return { root: undefined, mistakes: [{ ...place, message: `this is not valid YAML: ${reason}` }] };
  }
  return new TreeBuilder(text, events, places).build();
}

/** Converts offsets to lines and columns. */
class Places {
  readonly #lineStarts: number[] = [0];

  constructor(text: string) {
    for (const match of text.matchAll(/\r\n|\r|\n/g)) this.#lineStarts.push(match.index + match[0].length);
  }

  at(offset: number): Place {
    const line = firstIndex(this.#lineStarts.length, (i) => this.#lineStarts[i]! > offset);
    return { line, column: offset - this.#lineStarts[line - 1]! + 1 };
  }
}

class TreeBuilder {
  readonly #anchors = new Map<string, YamlNode>();
  readonly #mistakes: YamlMistake[] = [];
  #next = 0;
  /** Position of an empty value: that of the last node before it. */
  #lastPlace: Place = { line: 1, column: 1 };

  constructor(
    private readonly text: string,
    private readonly events: readonly Event[],
    private readonly places: Places,
  ) {}

  build(): YamlFile {
    let root: YamlNode | undefined;
    let documents = 0;
    while (this.#next < this.events.length) {
      const event = this.events[this.#next++]!;
      if (event.type !== EVENT_ID.DOCUMENT) continue;
      documents++;
      while (this.events[this.#next] !== undefined && this.events[this.#next]!.type !== EVENT_ID.POP) {
        const node = this.#node();
        if (documents === 1) root = node;
        else if (documents === 2)
          this.#mistake(node, 'a second YAML document begins here; a file must have only one');
      }
      this.#next++;
    }
    return { root, mistakes: this.#mistakes };
  }

  #mistake(place: Place, message: string): void {
    this.#mistakes.push({ line: place.line, column: place.column, message });
  }

  #node(): YamlNode {
    const event = this.events[this.#next++]!;
    switch (event.type) {
      case EVENT_ID.SCALAR: {
        const empty = event.valueStart < 0;
        if (!empty) this.#lastPlace = this.places.at(event.valueStart);
        const quoted =
          event.style === SCALAR_STYLE.SINGLE_QUOTED || event.style === SCALAR_STYLE.DOUBLE_QUOTED;
        const place = {
          line: this.#lastPlace.line,
          column: this.#lastPlace.column - (quoted && !empty ? 1 : 0),
        };
        const text = empty ? '' : getScalarValue(this.text, event);
        const node: YamlNode = { kind: 'scalar', text, plain: event.style === SCALAR_STYLE.PLAIN, ...place };
        return this.#tagged(event, node);
      }
      case EVENT_ID.SEQUENCE: {
        const place = this.places.at(event.start);
        this.#lastPlace = place;
        const items: YamlNode[] = [];
        while (this.events[this.#next]!.type !== EVENT_ID.POP) items.push(this.#node());
        this.#next++;
        return this.#tagged(event, { kind: 'sequence', items, ...place });
      }
      case EVENT_ID.MAPPING: {
        const place = this.places.at(event.start);
        this.#lastPlace = place;
        return this.#tagged(event, { kind: 'mapping', entries: this.#entries(), ...place });
      }
      case EVENT_ID.ALIAS:
        return this.#alias(event.anchorStart, event.anchorEnd);
      default:
        // The parser gives no other event in the place of a value.
        return { kind: 'scalar', text: '', plain: true, ...this.#lastPlace };
    }
  }

  #alias(anchorStart: number, anchorEnd: number): YamlNode {
    const place = this.places.at(anchorStart - 1);
    this.#lastPlace = place;
    const name = this.text.slice(anchorStart, anchorEnd);
    const node = this.#anchors.get(name);
    if (node !== undefined) return node;
    this.#mistake(place, `no anchor "&${name}" is defined before this alias`);
    return { kind: 'scalar', text: '', plain: true, ...place };
  }

  /** Registers the anchor of a node once the node is complete, so a node can't contain itself, and checks the tag. */
  #tagged(
    event: { anchorStart: number; anchorEnd: number; tagStart: number; tagEnd: number },
    node: YamlNode,
  ): YamlNode {
    if (event.anchorStart >= 0) this.#anchors.set(this.text.slice(event.anchorStart, event.anchorEnd), node);
    const tag = event.tagStart < 0 ? '!' : this.text.slice(event.tagStart, event.tagEnd);
    if (!tagsAllowed.test(tag))
      this.#mistake(this.places.at(event.tagStart), `the tag "${tag}" is not supported`);
    return node;
  }

  #entries(): YamlEntry[] {
    const entries = new Map<string, YamlEntry>();
    const merged: YamlNode[] = [];
    while (this.events[this.#next]!.type !== EVENT_ID.POP) {
      const key = this.#node();
      const value = this.#node();
      if (key.kind !== 'scalar') {
        this.#mistake(key, 'a key must be a word, not a list or a mapping');
      } else if (key.text === '<<' && key.plain) {
        merged.push(value);
      } else {
        const first = entries.get(key.text);
        if (first !== undefined) {
          this.#mistake(key, `the key "${key.text}" is given twice; it is already on line ${first.line}`);
        } else {
          entries.set(key.text, { key: key.text, value, line: key.line, column: key.column });
        }
      }
    }
    this.#next++;
    for (const node of merged) this.#merge(node, entries);
    return [...entries.values()];
  }

  /** YAML's merge key: adds entries that the mapping lacks from the other mappings, the first of which takes precedence. */
  #merge(node: YamlNode, entries: Map<string, YamlEntry>): void {
    const sources = node.kind === 'sequence' ? node.items : [node];
    for (const source of sources) {
      if (source.kind !== 'mapping') {
        this.#mistake(source, '"<<" merges a mapping or a list of mappings');
        continue;
      }
      for (const entry of source.entries) if (!entries.has(entry.key)) entries.set(entry.key, entry);
    }
  }
}

/** Collects the problems of one file, so that all are reported at once, and notes about it. */
export class ProblemList {
  /** Messages about what is accepted but not used. */
  readonly notes: string[] = [];
  readonly #problems: ConfigProblem[] = [];

  constructor(readonly file: string) {}

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
    const named = keys.length === 0 ? '' : ` with ${joinNames(keys, 'and')}`;
    problems.add(node, `${what} must be a mapping${named}, not ${describe(node)}`);
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
  constructor(
    private readonly entries: ReadonlyMap<string, YamlEntry>,
    readonly place: Place,
    private readonly problems: ProblemList,
  ) {}

  /** Whether the key has a value, valid or not. */
  has(key: string): boolean {
    return this.#valueOf(key) !== undefined;
  }

  /** Position of the value; without a value, that of the section. */
  placeOf(key: string): Place {
    return this.entries.get(key)?.value ?? this.place;
  }

  /** Adds a problem at the value of a key, or at a position of the file. */
  problem(at: string | Place, message: string): void {
    this.problems.add(typeof at === 'string' ? this.placeOf(at) : at, message);
  }

  /** Adds a note about the file; with `key`, about the line of its value. */
  note(message: string, key?: string): void {
    const line = key === undefined ? '' : `:${this.placeOf(key).line}`;
    this.problems.notes.push(`${this.problems.file}${line}: ${message}`);
  }

  /** Absolute path of the folder of the file, from which relative paths in it start. */
  get folder(): string {
    return dirname(resolve(this.problems.file));
  }

  /** Reports a missing key that is required. */
  missing(key: string, message: string): void {
    // Report it at the key, if that is there without a value; else at the section.
    this.problems.add(this.entries.get(key) ?? this.place, `${key} is missing: ${message}`);
  }

  /** A scalar as written, whether YAML takes it as a string, a number or a date. */
  text(key: string): string | undefined {
    const node = this.#valueOf(key);
    if (node === undefined) return undefined;
    if (node.kind === 'scalar') return node.text;
    this.problems.add(node, `${key} must be a text, not ${describe(node)}`);
    return undefined;
  }

  /** The text of a key whose value is a scalar; undefined for any other value, which is no problem here. */
  scalar(key: string): string | undefined {
    const node = this.#valueOf(key);
    return node?.kind === 'scalar' ? node.text : undefined;
  }

  /** A text that `read` can parse; `shape` describes valid texts. */
  parsed<T>(key: string, shape: string, read: (text: string) => T | undefined): T | undefined {
    const text = this.text(key);
    if (text === undefined) return undefined;
    const value = read(text);
    if (value === undefined) this.problem(key, `${key} must be ${shape}, not ${JSON.stringify(text)}`);
    return value;
  }

  /** One of `names`, in any case. */
  oneOf<T extends string>(key: string, names: readonly T[]): T | undefined {
    const text = this.text(key);
    if (text === undefined) return undefined;
    const found = names.find((name) => name === text.toLowerCase());
    if (found === undefined) {
      const message = `${key} must be ${joinNames(names, 'or')}, not ${JSON.stringify(text)}${nearName(text, names)}`;
      this.problem(key, message);
    }
    return found;
  }

  /** The absolute path of a file or folder, which is `what` in the message about an empty one. */
  path(key: string, what = 'a file'): string | undefined {
    const text = this.text(key);
    if (text === '') this.problem(key, `${key} must name ${what}, not be empty`);
    return text === undefined ? undefined : resolve(this.folder, text);
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
    return this.parsed(key, shape, within(parseDuration, minMs));
  }

  /** A size in bytes, greater than 0. */
  byteSize(key: string): number | undefined {
    return this.parsed(key, `${byteSizeShape}, more than 0`, within(parseByteSize, 1));
  }

  /** The keys that are there, in the order of the file. */
  get keys(): readonly string[] {
    return [...this.entries.keys()];
  }

  /** The mapping under a key; with null it may have any keys. */
  section(key: string, keys: readonly string[] | null): YamlSection | undefined {
    const node = this.#valueOf(key);
    const own = node?.kind === 'mapping' ? node.entries.map((entry) => entry.key) : [];
    return node === undefined ? undefined : makeSection(node, key, keys ?? own, this.problems);
  }

  /** The mappings in the list under a key; `what` is the name of one of them in messages. */
  sections(key: string, what: string, keys: readonly string[]): readonly YamlSection[] | undefined {
    const node = this.#valueOf(key);
    if (node === undefined) return undefined;
    if (node.kind !== 'sequence') {
      this.problems.add(node, `${key} must be a list, not ${describe(node)}`);
      return undefined;
    }
    return node.items.flatMap((item) => makeSection(item, what, keys, this.problems) ?? []);
  }

  /** One text or a list of texts. */
  texts(key: string): readonly string[] | undefined {
    const node = this.#valueOf(key);
    if (node === undefined) return undefined;
    const items = node.kind === 'sequence' ? node.items : [node];
    return items.flatMap((item) => {
      if (item.kind === 'scalar') return [item.text];
      this.problems.add(item, `${key} must be a text or a list of texts, not ${describe(item)}`);
      return [];
    });
  }

  #valueOf(key: string): YamlNode | undefined {
    const value = this.entries.get(key)?.value;
    return value === undefined || isNull(value) ? undefined : value;
  }
}

/** Texts that need no quotes in YAML and are not read as another type. */
const plainText = /^(?!(?:null|true|false|yes|no|on|off|y|n)$)[a-z][a-z0-9_]*$/i;

/** Writes a text as YAML. JSON strings are valid YAML too. */
export function yamlText(text: string): string {
  if (plainText.test(text)) return text;
  return /[\p{Cc}\u2028\u2029\ufeff]/u.test(text) ? JSON.stringify(text) : `'${text.replaceAll("'", "''")}'`;
}

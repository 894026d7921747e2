import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseCursor } from '../../engine/core/cursor.js';
import { makeSchema, type Field, type FieldType } from '../../engine/core/schema.js';
import type { ModelRecord, Value } from '../model/dataset.js';
import type { CaseDataset, Commit, HttpRequest, ServerState } from './answerer.js';

export interface Expected {
  readonly status: number;
  /** Labels of the records of the body, or its lines. */
  readonly lines: string[];
  /** The whole body if it is not JSON Lines. */
  readonly text: string | undefined;
  /** The parameter that a problem names; null for none. */
  readonly parameter: string | null;
  /** Text that the detail of a problem must contain. */
  readonly says: string | undefined;
  /** `*` for any value, `-` for none. */
  readonly headers: [string, string][];
  isEmpty: boolean;
}

export type Step =
  | { readonly kind: 'commit'; readonly name: string }
  | { readonly kind: 'restart' }
  | { readonly kind: 'compact' }
  | { readonly kind: 'begin'; readonly request: HttpRequest }
  | { readonly kind: 'finish'; readonly expected: Expected }
  | { readonly kind: 'request'; readonly request: HttpRequest; readonly expected: Expected };

export interface Case {
  readonly name: string;
  /** File and line, for messages. */
  readonly place: string;
  readonly dataset: CaseDataset;
  readonly isHttp: boolean;
  readonly state: ServerState | undefined;
  readonly steps: readonly Step[];
}

interface Line {
  readonly text: string;
  readonly place: string;
}

/** Reads the datasets and cases of all text files in this folder. */
export function readCases(): Case[] {
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.txt'));
  const blocks = files.flatMap((file) => blocksOf(file));
  const datasets = new Map<string, CaseDataset>();
  for (const block of blocks) {
    if (!block[0]!.text.startsWith('dataset ')) continue;
    const dataset = parseDataset(block);
    datasets.set(dataset.name, dataset);
  }
  return blocks
    .filter((block) => block[0]!.text.startsWith('case '))
    .map((block) => new CaseParser(block, datasets).parse());
}

function blocksOf(file: string): Line[][] {
  const blocks: Line[][] = [];
  const lines = readFileSync(join(import.meta.dirname, file), 'utf8').split('\n');
  lines.forEach((text, i) => {
    if (text.trim() === '' || text.startsWith('#')) return;
    const line = { text, place: `${file}:${i + 1}` };
    if (/^(dataset|case) /.test(text)) blocks.push([line]);
    else if (blocks.length === 0) fail(line, 'expected "dataset" or "case" first');
    else blocks.at(-1)!.push(line);
  });
  return blocks;
}

function fail(line: Line, message: string): never {
  throw new Error(`${line.place}: ${message}: ${line.text}`);
}

function parseDataset(lines: readonly Line[]): CaseDataset {
  let nowMs = 0;
  let fields: Field[] = [];
  const commits: { name: string; records: ModelRecord[] }[] = [];
  const labels = new Map<string, ModelRecord>();
  for (const line of lines.slice(1)) {
    const [word, rest] = split(line.text);
    if (word === 'now') nowMs = Date.parse(rest);
    else if (word === 'fields') fields = rest.split(' ').map(parseField);
    else if (word === 'commit') commits.push({ name: rest, records: [] });
    else {
      const [cursor, json] = split(rest);
      const position = parseCursor(cursor);
      const commit = commits.at(-1);
      if (position === undefined || commit === undefined)
        fail(line, 'expected a label, a cursor and an object');
      const given = JSON.parse(json) as Record<string, unknown>;
      const record = { position, values: fields.map((field) => valueOf(field, given[field.name])) };
      commit.records.push(record);
      labels.set(word, record);
    }
  }
  const records = commits.flatMap((commit) => commit.records);
  const name = split(lines[0]!.text)[1];
  return { name, nowMs, commits: commits satisfies Commit[], labels, schema: makeSchema(fields), records };
}

function split(text: string): [string, string] {
  const blank = text.indexOf(' ');
  return blank < 0 ? [text, ''] : [text.slice(0, blank), text.slice(blank + 1)];
}

function parseField(text: string): Field {
  const [name, type] = text.split(':');
  return { name: name!, type: type as FieldType };
}

function valueOf(field: Field, given: unknown): Value {
  if (given === undefined || given === null) return null;
  switch (field.type) {
    case 'int':
      return BigInt(given as string | number);
    case 'time':
      return BigInt(typeof given === 'string' ? Date.parse(given) : (given as number));
    case 'float':
      return Number(given);
    case 'string':
      return String(given);
    case 'bool':
      return given === true ? 1n : 0n;
  }
}

/** One case, line by line. */
class CaseParser {
  readonly #lines: readonly Line[];
  readonly #datasets: ReadonlyMap<string, CaseDataset>;
  readonly #steps: Step[] = [];
  #dataset: CaseDataset | undefined;
  #agent: string | undefined;
  #isHttp = false;
  #state: ServerState | undefined;
  #at = 1;

  constructor(lines: readonly Line[], datasets: ReadonlyMap<string, CaseDataset>) {
    this.#lines = lines;
    this.#datasets = datasets;
  }

  parse(): Case {
    const first = this.#lines[0]!;
    while (this.#at < this.#lines.length) this.#parseLine(this.#next());
    const dataset = this.#dataset;
    if (dataset === undefined) fail(first, 'no dataset');
    const commits = dataset.commits.map(({ name }): Step => ({ kind: 'commit', name }));
    const steps = this.#steps.some((step) => step.kind === 'commit')
      ? this.#steps
      : [...commits, ...this.#steps];
    const name = split(first.text)[1];
    return { name, place: first.place, dataset, isHttp: this.#isHttp, state: this.#state, steps };
  }

  #next(): Line {
    return this.#lines[this.#at++]!;
  }

  #parseLine(line: Line): void {
    const [word, rest] = split(line.text);
    switch (word) {
      case 'on':
        this.#dataset = this.#datasets.get(rest);
        if (this.#dataset === undefined) fail(line, 'no such dataset');
        return;
      case 'http':
        this.#isHttp = true;
        return;
      case 'given':
        this.#state = rest as ServerState;
        return;
      case 'agent':
        this.#agent = expand(rest);
        return;
      case 'commit':
        if (this.#dataset?.commits.some(({ name }) => name === rest) !== true) fail(line, 'no such commit');
        this.#steps.push({ kind: 'commit', name: rest });
        return;
      case 'restart':
      case 'compact':
        this.#steps.push({ kind: word });
        return;
      case 'begin':
        this.#steps.push({ kind: 'begin', request: this.#queryRequest(rest) });
        return;
      case 'finish':
        this.#steps.push({ kind: 'finish', expected: this.#expected() });
        return;
      case 'request':
        this.#steps.push({ kind: 'request', request: this.#queryRequest(rest), expected: this.#expected() });
        return;
      case 'send':
        this.#steps.push({
          kind: 'request',
          request: this.#httpRequest(line, rest),
          expected: this.#expected(),
        });
        return;
      default:
        fail(line, 'unknown word');
    }
  }

  #queryRequest(query: string): HttpRequest {
    const agent = this.#agent ?? this.#dataset!.name;
    const target = `/api/query/${agent}${query === '' ? '' : `?${expand(query)}`}`;
    return { method: 'GET', target, version: 'HTTP/1.1', headers: [], body: '' };
  }

  #httpRequest(line: Line, text: string): HttpRequest {
    const [method, target, version] = expand(text).split(' ');
    if (version === undefined) fail(line, 'expected a method, a target and a version');
    const headers = this.#headers();
    let body = '';
    if (this.#lines[this.#at]?.text.startsWith('body ') === true) body = split(this.#next().text)[1];
    return { method: method!, target: target!, version, headers, body };
  }

  #headers(): [string, string][] {
    const headers: [string, string][] = [];
    while (this.#lines[this.#at]?.text.startsWith('header ') === true) {
      const match = /^header ([^:]+): (.*)$/.exec(this.#next().text)!;
      headers.push([match[1]!, expand(match[2]!)]);
    }
    return headers;
  }

  #expected(): Expected {
    const line = this.#next();
    const match = /^(\d{3})(?: (.*))?$/.exec(line?.text ?? '');
    if (match === null) fail(line, 'expected a status');
    const status = Number(match[1]);
    const rest = match[2] ?? '';
    const problem = /^(\S+)(?: "(.*)")?$/.exec(rest);
    const lines = status === 200 ? rest.split(' ').filter((label) => label !== '') : [];
    while (this.#lines[this.#at]?.text.startsWith('{') === true) lines.push(this.#next().text);
    const text =
      this.#lines[this.#at]?.text.startsWith('text ') === true ? split(this.#next().text)[1] : undefined;
    const expected: Expected = {
      status,
      lines,
      text: text === undefined ? undefined : (JSON.parse(text) as string),
      parameter: status === 200 || problem?.[1] === '-' ? null : (problem?.[1] ?? null),
      says: status === 200 ? undefined : problem?.[2],
      headers: this.#headers(),
      isEmpty: false,
    };
    if (this.#lines[this.#at]?.text === 'empty') {
      this.#next();
      expected.isEmpty = true;
    }
    return expected;
  }
}

/** `{x*3}` is `xxx`. */
function expand(text: string): string {
  return text.replace(/\{([^{}]+)\*(\d+)\}/g, (_, piece: string, count: string) =>
    piece.repeat(Number(count)),
  );
}

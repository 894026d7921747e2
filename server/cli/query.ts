import {
  answeredValue,
  formatCursor,
  isLogstrataError,
  jointOf,
  type AgentStore,
  type Field,
  type LineFormat,
  type Predicate,
  type Position,
  type Query,
  type RecordStore,
  type ScanStats,
  type Schema,
  type Seen,
  type SeveralQuery,
  type SeveralStore,
} from '../../engine/index.js';
import type { AgentDefinition } from '../../agents/definition/definition.js';
import { linesAsEvents } from '../follow/event-stream.js';
import { allAfter, beforeAll } from '../follow/backlogs.js';
import { followedFrom, type FollowedPosition } from '../follow/followed-position.js';
import { agentNames, parseQueryRequest, type QueryContext } from '../http/query-request.js';
import { readParameters, type FilterContext } from '../http/parameters.js';
import { parseSeveralRequest } from '../http/several-request.js';
import { exitDone, UsageError } from './failure.js';
import { completed, withWorkers } from './opened-archive.js';
import {
  chooseAgent,
  limitDefault,
  rawQueryOf,
  readSettings,
  type GlobalFlags,
  type QueryBounds,
  type Settings,
} from './options.js';
import { RecordDisplay } from './record-display.js';
import type { StopSignals } from './stoppable.js';
import {
  coloured,
  formatBytes,
  formatCount,
  formatCounted,
  formatPairs,
  formatSpan,
  formatTime,
  hasColours,
  linesOf,
  plain,
  screenWidth,
  tell,
  writeOut,
  writeRecords,
  type ColourChoice,
  type Pair,
} from './terminal.js';

const signs = { eq: '=', ne: '≠', gt: '>', gte: '≥', lt: '<', lte: '≤' } as const;

/** A parsed filter: field, comparison and typed value. */
function describePredicate(predicate: Predicate, schema: Schema): string {
  if (predicate.kind === 'anywhere')
    return `any text ${predicate.isAbsent ? 'not_' : ''}${predicate.op} ${JSON.stringify(predicate.value)}`;
  if (predicate.kind === 'any' || predicate.kind === 'set')
    return predicate.members.map((member) => describePredicate(member, schema)).join(' or ');
  const { name, type } = schema.fields[predicate.field]!;
  if (predicate.kind === 'exists') return `${name} has ${predicate.value ? 'a value' : 'no value'}`;
  const value = answeredValue(type, predicate.value);
  if (predicate.kind === 'string') return `${name} ${predicate.op} ${JSON.stringify(value)}`;
  const time = type === 'time' ? ` (${formatTime(Number(value))} UTC)` : '';
  return `${name} ${signs[predicate.op]} ${value}${time}`;
}

/** The kind of index that an agent's file sets for a field; empty where the data decide. */
export function describeIndexOf({ index }: Field): string {
  return index === undefined ? '' : ` (index: ${index})`;
}

/** Typed filters as pairs, the first of which has the title. */
function describeFilters(title: string, predicates: readonly Predicate[], schema: Schema): Pair[] {
  return predicates.map((predicate, i): Pair => {
    const index = 'field' in predicate ? describeIndexOf(schema.fields[predicate.field]!) : '';
    return [i === 0 ? title : '', describePredicate(predicate, schema) + index];
  });
}

/** The filters of several agents, each by its own fields. */
function describeAgents(of: SeveralQuery['of'], { stores }: SeveralStore): Pair[] {
  return stores.flatMap(({ name, schema }, k): Pair[] => {
    const predicates = of[k]!;
    if (predicates === null) return [[name, 'no record can match, as it lacks a field']];
    return describeFilters(name, predicates, schema);
  });
}

/** The parsed query as lines for people: reading order, bounds and typed filters. */
function describeQuery(query: Query, store: RecordStore): string[] {
  const { after, before, limit, predicates } = query;
  const cursorOf = (position: Position): string => {
    const joint = jointOf(position);
    return joint === undefined ? formatCursor(position) : store.cursors!.format(joint);
  };
  return formatPairs([
    ['reads', after === undefined ? 'newest first, answered oldest first' : 'oldest first'],
    ['limit', Number.isSafeInteger(limit) ? formatCount(limit) : 'none'],
    ['after', after && cursorOf(after)],
    ['before', before && cursorOf(before)],
    ...describeFilters('filters', predicates, store.schema),
    ...('of' in query ? describeAgents((query as SeveralQuery).of, store as SeveralStore) : []),
  ]);
}

/** The cost of a query as lines for people, for `--explain`. */
export function describeStats(stats: ScanStats): string[] {
  const some = (count: number): string | false => count > 0 && formatCount(count);
  return formatPairs([
    ['runs within the bounds', formatCount(stats.runs)],
    ['row groups', formatCount(stats.rowGroups)],
    ['  ruled out by time', some(stats.rowGroupsPrunedByTime)],
    ['  ruled out by bounds', some(stats.rowGroupsPrunedByZone)],
    ['  ruled out by values', some(stats.rowGroupsPrunedByValue)],
    ['  ruled out by grams', some(stats.rowGroupsPrunedByGram)],
    ['  ruled out by dictionary', some(stats.rowGroupsPrunedByDictionary)],
    ['  scanned', formatCount(stats.rowGroupsScanned)],
    ['rows scanned', formatCount(stats.rowsScanned)],
    ['rows returned', formatCount(stats.rowsReturned)],
    ['bytes read', formatBytes(stats.bytesRead)],
    ['columns decoded', formatCount(stats.columnsDecoded)],
    ['columns from the cache', formatCount(stats.columnsCached)],
    ['columns ruled out by grams', some(stats.columnsPrunedByGram)],
    ['value filter pieces read', formatCount(stats.valuePiecesRead)],
    ['gram filter pieces read', formatCount(stats.gramPiecesRead)],
    ['time to find the rows', formatSpan(stats.selectMs)],
    ['time to write them out', formatSpan(stats.writeMs)],
  ]);
}

/** What a question is parsed against: the fields of an agent, or several agents. */
export type Asked = { readonly schema: Schema } | SeveralStore;

/**
 * Opens the archive for a question about an agent, or about several whose names are joined by commas. Mistakes in a question about one are
 * reported before the archive is opened, unless its fields are only known from the archive.
 */
export async function askAgents<Question>(
  flags: GlobalFlags & { readonly workers?: number },
  role: string,
  agents: string,
  parse: (asked: Asked, settings: Settings) => Question,
  run: (store: AgentStore | SeveralStore, question: Question, settings: Settings) => Promise<void>,
): Promise<number> {
  const settings = await readSettings(flags);
  const written: AgentDefinition[] = [];
  for (const name of agents.includes(',') ? agentNames(agents) : [agents])
    written.push(await chooseAgent(settings, name));
  const isKnown = written.length === 1 && written[0]!.archive?.infersFields !== true;
  const early = isKnown ? parse(written[0]!, settings) : undefined;
  await withWorkers(settings, 'read', role, flags.workers, async (archive) => {
    const stores: AgentStore[] = [];
    for (const agent of written)
      stores.push(await archive.agent(agent.name, (await completed(archive, agent)).schema));
    const [first, ...others] = stores;
    const store = others.length === 0 ? first! : first!.joined(others);
    await run(store, early ?? parse(store, settings), settings);
  });
  return exitDone;
}

interface QueryFlags extends GlobalFlags, QueryBounds, FormatFlags {
  readonly follow?: boolean;
  readonly explain?: boolean;
  readonly workers?: number;
}

/** Runs `logstrata query`: writes the answer of the HTTP route to standard output, byte for byte the same except on a terminal. */
export async function query(
  flags: QueryFlags,
  signals: StopSignals,
  agent: string,
  words: readonly string[],
): Promise<number> {
  const { explain = false, follow: follows = false } = flags;
  const format = formatOf(flags);
  const { since, until, limit, after, before, fields } = flags;
  const formats = format === undefined || format === 'table' ? [] : [format];
  const options = { since, until, limit, after, before, fields, format: formats };
  const parse = (agents: Asked, { config }: Settings): Query => {
    const { timezone, limitMax } = config.server;
    const limits = { limitMax, limitDefault: Math.min(limitDefault, limitMax) };
    const parsed = queryIn(agents, words, options, { now: Date.now(), timezone, ...limits });
    return follows ? { ...parsed, ...followedQuery(parsed) } : parsed;
  };
  const answer = async (store: RecordStore, asked: Query, { config }: Settings): Promise<void> => {
    if (explain) describeQuery(asked, store).forEach(tell);
    const output = recordOutput({ query: asked, store, zone: config.server.timezone, flags });
    const { signal } = signals;
    if (follows) {
      await follow(store, asked, output, signal);
      signals.obeyed();
      return;
    }
    const scan = await store.scan(asked, { signal, lends: true });
    for await (const piece of scan.lines) await output.write(piece);
    output.end();
    if (explain) describeStats(scan.stats).forEach(tell);
  };
  return askAgents(flags, 'query', agent, parse, answer);
}

/** Parses the words and options of a query of one agent or of several, as the route parses its parameters. */
export function queryIn(
  asked: Asked,
  words: readonly string[],
  options: Readonly<Record<string, readonly string[] | undefined>>,
  others: Omit<QueryContext, 'schema'>,
): Query | SeveralQuery {
  const { schema } = asked;
  const context = { ...others, schema };
  if (!('stores' in asked)) return parseQueryRequest(rawQueryOf(words, options, schema), context);
  const { since, until, ...common } = options;
  const query = parseSeveralRequest(asked, rawQueryOf(words, common, schema), context);
  const within = predicatesWithin(asked, { since, until }, context);
  const of = query.of.map((predicates, k) => {
    const more = within[k]!;
    return predicates === null || more === null ? null : [...predicates, ...more];
  });
  return { ...query, of };
}

/**
 * The predicates that `--since` and `--until` are for each agent, which has a time field of its own; null where it has none, so that no record of it
 * matches.
 */
export function predicatesWithin(
  { stores }: SeveralStore,
  { since, until }: Readonly<Record<string, readonly string[] | undefined>>,
  context: Omit<FilterContext, 'schema'>,
): readonly (readonly Predicate[] | null)[] {
  return stores.map(({ schema }) => {
    if (since === undefined && until === undefined) return [];
    if (!schema.fields.some(({ type }) => type === 'time')) return null;
    return readParameters(rawQueryOf([], { since, until }, schema), [], { ...context, schema }).predicates;
  });
}

/** The flags that choose how records are written. */
interface FormatFlags {
  readonly jsonl?: boolean;
  readonly json?: boolean;
  readonly csv?: boolean;
  readonly table?: boolean;
  readonly wrap?: boolean;
  readonly color: ColourChoice;
}

/** The format that the flags choose. Without one it is `table` on a terminal, else undefined, which means JSON Lines. */
function formatOf({ jsonl, json, csv, table, wrap }: FormatFlags): LineFormat | 'table' | undefined {
  if (json === true) return 'json';
  if (csv === true) return 'csv';
  if (jsonl === true) return 'jsonl';
  return table === true || wrap === true || process.stdout.isTTY ? 'table' : undefined;
}

/** Writes the records of an answer to standard output. */
interface RecordOutput {
  /** Writes whole lines. The buffer may be reused once the promise has resolved. */
  write(piece: Uint8Array): Promise<void>;
  /** Ends the answer. On a terminal it prints notes for the user, such as how to get the next records. */
  end(): void;
}

/** What an output needs to know about the query. */
interface OutputContext {
  readonly query: Query;
  readonly store: RecordStore;
  readonly zone: string;
  readonly flags: FormatFlags;
}

/** Makes the output for the format that the flags choose. */
function recordOutput(context: OutputContext): RecordOutput {
  if (formatOf(context.flags) === 'table') return new DisplayOutput(context);
  return { write: writeRecords, end: () => undefined };
}

/** What the records of several agents have besides their fields. */
const agentColumn = { name: '_agent', type: 'string' } as const;

class DisplayOutput implements RecordOutput {
  readonly #display: RecordDisplay;
  readonly #query: Query;

  constructor({ query, store, zone, flags: { color, wrap } }: OutputContext) {
    const { schema, cursors } = store;
    const chosen = query.form?.fields ?? null;
    const fields = chosen?.map((field) => schema.fields[field]!) ?? schema.fields;
    const names = cursors === undefined ? fields : [agentColumn, ...fields];
    this.#query = query;
    this.#display = new RecordDisplay({
      fields: names.map(({ name, type }) => ({ name, type })),
      isChosen: chosen !== null,
      zone,
      wraps: wrap === true,
      paint: hasColours(color, process.stdout.isTTY, process.env) ? coloured : plain,
      screenWidth,
    });
  }

  write(piece: Uint8Array): Promise<void> {
    const text = Buffer.from(piece.buffer, piece.byteOffset, piece.length).toString('utf8');
    return writeOut(this.#display.show(text));
  }

  end(): void {
    if (!process.stdout.isTTY || !process.stderr.isTTY) return;
    const { count, first, last, hidden } = this.#display;
    const { limit, after } = this.#query;
    if (count === 0 && limit > 0) tell('no record matches');
    const more =
      after === undefined ? `--before ${first}: the records before` : `--after ${last}: the next ones`;
    const notes = linesOf(
      count > 0 && count >= limit && more,
      hidden > 0 && `--wrap: ${formatCounted(hidden, 'more field')}`,
    );
    if (notes.length > 0) tell(`(${notes.join('; ')})`);
  }
}

/** Milliseconds between two readings without a reported change. They reveal errors that make the archive unreadable. */
const lookMs = 5000;

/**
 * Prepares a query to be followed: with `after` it has no limit, else it begins with the newest records. Throws a `UsageError` for options
 * that can't be combined with following.
 */
function followedQuery(query: Query): Query {
  const format = query.form?.format ?? 'jsonl';
  if (query.before !== undefined)
    throw new UsageError('--before cannot be combined with --follow, which continues with new records');
  if (format !== 'jsonl')
    throw new UsageError(
      `--follow writes records as they arrive: as JSON Lines or with --table, not as ${format}`,
    );
  return query.after === undefined ? query : { ...query, limit: Number.MAX_SAFE_INTEGER };
}

/**
 * Writes the result of a query, and then, until the signal, each record that becomes visible after the last one, in the order of positions.
 * It reads the archive like any command, so it works whichever process writes, even without a server. It tracks which records were written,
 * so none is lost or repeated. Records that are inserted before the last written one are not written; their number is reported on standard
 * error.
 */
async function follow(
  store: RecordStore,
  query: Query,
  output: RecordOutput,
  signal: AbortSignal,
): Promise<void> {
  const position = followedFrom(store.cursors, query.after);
  const later = allAfter({ query }, beforeAll);
  const changes = new Changes(store, signal);
  let seen: Seen | null = null;
  try {
    while (!signal.aborted) {
      changes.isNew = false;
      const { scan, state }: Awaited<ReturnType<RecordStore['scanAdded']>> = await store.scanAdded(
        seen === null ? query : later,
        seen,
        { signal, lends: true },
      );
      for await (const piece of scan.lines) {
        const lines = position.take(linesAsEvents(piece), null);
        if (lines !== null) await output.write(lines);
      }
      // Where no record was written, following continues after the state that was read.
      if (position.isFirst) position.begin(state.last);
      seen = state;
      tellBehind(position);
      await changes.next();
    }
  } catch (error) {
    if (signal.aborted) return;
    if (isLogstrataError(error) && !position.isFirst)
      tell(`logstrata: following has stopped; to continue: --after ${position.last}`);
    throw error;
  } finally {
    changes.end();
  }
}

function tellBehind(position: FollowedPosition): void {
  const behind = position.takeEarlier();
  if (behind === null) return;
  const records = formatCounted(behind.count, 'record');
  tell(`late: ${records} stored before ${position.last}, the first at ${behind.lowest}`);
}

/** Waits for changes of a store. Its timer keeps the process alive. */
class Changes {
  /** Whether there was a change since the caller last set this to false. */
  isNew = false;
  readonly #signal: AbortSignal;
  readonly #endListening: () => void;
  #wake: () => void = () => undefined;
  readonly #timer: NodeJS.Timeout;

  constructor(store: RecordStore, signal: AbortSignal) {
    this.#signal = signal;
    this.#endListening = store.onChange(this.#note);
    this.#timer = setInterval(this.#note, lookMs);
    signal.addEventListener('abort', this.#note);
  }

  next(): Promise<void> {
    if (this.isNew) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  end(): void {
    clearInterval(this.#timer);
    this.#endListening();
    this.#signal.removeEventListener('abort', this.#note);
  }

  readonly #note = (): void => {
    this.isNew = true;
    this.#wake();
  };
}

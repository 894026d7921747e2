import { comparePositions, type JointPosition, type Position } from '../core/cursor.js';
import type { LineFormat, Predicate, Schema } from '../core/schema.js';
import { lineKeysOf, numberBytesMax } from '../kernels/json-rows.js';
import type { Beginning, Begun } from '../scan/answer.js';
import { partsOf, positionIn } from '../scan/json-lines.js';
import { writtenFields, type WrittenFields } from '../scan/json-columns.js';
import { LineWriter } from '../scan/line-writer.js';
import { assertStanding, indexOfRuns, planScan, UnitWalk, type ScanPlan } from '../scan/plan.js';
import { preparePredicates } from '../scan/predicate.js';
import type { Query } from '../scan/query.js';
import { readingEstimate, tooMuchToRead } from '../scan/reading-estimate.js';
import { RowGroupFilter } from '../scan/row-group-filter.js';
import type { Matches } from '../scan/selection.js';
import { finderOf, type FinderWork, type RemoteSource } from '../scan/tiered-finder.js';
import type { Snapshot, SnapshotRuns } from '../store/reading/snapshot.js';
import { AgentCut, AgentStream } from './agent-stream.js';
import { Clocks } from './clocks.js';
import { after, end, gapsOf, later, start, type Gap, type KnownGaps } from './known-gaps.js';
import { mergedRows, type MergedAgent } from './merge.js';
import { jointOf } from './several-cursor.js';

/** A query for the records of several agents. Its fields are those of their common schema, its predicates are none. */
export interface SeveralQuery extends Query {
  readonly after?: JointPosition | Position | undefined;
  readonly before?: JointPosition | Position | undefined;
  /** The predicates of each agent; null where no record of it can match. */
  readonly of: readonly (readonly Predicate[] | null)[];
}

/** One agent of a state of several. */
export interface AgentOfSeveral {
  readonly name: string;
  readonly schema: Schema;
  /** The rows that are answered. */
  readonly runs: SnapshotRuns;
  /** All rows of the state, which clocks and cursors are of. */
  readonly all: SnapshotRuns;
  /** Stands for the agent, whatever its state. */
  readonly key: object;
  /** Reads its rows on other machines. */
  readonly remote: RemoteSource | undefined;
}

/** A state of several agents. `schema` has the fields of all; `runs` has none, and is the same object for the same states. */
export interface SeveralSnapshot extends Snapshot {
  readonly agents: readonly AgentOfSeveral[];
  /** The beginning of the cursors of each agent's records. */
  readonly heads: readonly string[];
  /** A position of each agent that no cursor may fall behind. */
  readonly floor: readonly Position[] | null;
}

/** Plans a query for each agent, and begins to merge their matches. */
export async function beginSeveral(given: Snapshot, query: Query, beginning: Beginning): Promise<Begun> {
  const snapshot = given as SeveralSnapshot;
  const { stats, settings, isWhole, open } = beginning;
  const { bytesMax } = settings;
  const asked = query as SeveralQuery;
  const work = open();
  const fields = fieldsOfAgents(snapshot, query);
  const writer = new LineWriter(fields[0]!, work);
  const { pace, threads } = work;
  const scan = { stats, pace, threads, onWait: () => writer.releaseTables() };
  const searches = snapshot.agents.map((agent, k) => {
    const { remote } = agent;
    return new AgentSearch(agent, asked, k, snapshot.floor, fields[k]!, { ...scan, remote });
  });
  if (isWhole && query.limit > 0) {
    let bytes = 0;
    for (const search of searches) {
      stats.runs += search.plan === null ? 0 : search.plan.end - search.plan.first;
      stats.rowGroups += search.plan?.rowGroups ?? 0;
      if (bytesMax !== undefined) bytes += await search.estimate();
    }
    if (bytes > (bytesMax ?? Infinity)) throw tooMuchToRead(bytes, bytesMax!);
  }
  return { writer, found: merged(searches, query, scan) };
}

async function* merged(searches: readonly AgentSearch[], { limit, after, last }: Query, scan: FinderWork) {
  if (limit === 0) return;
  const isLast = after === undefined || last === true;
  const agents = await Promise.all(searches.map((search) => search.begin(isLast)));
  const found = searches.reduce((sum, { count }) => sum + count, 0);
  const skip = isLast ? Math.max(0, found - limit) : 0;
  for await (const rows of mergedRows(agents, { skip, limit }, scan)) yield rows;
}

/** The search of one agent's records. */
class AgentSearch {
  /** Null where no record can match. */
  readonly plan;
  /** The matches that are known, where the last ones are asked for. */
  count = 0;
  readonly #filter: RowGroupFilter | null = null;
  readonly #gaps: KnownGaps | null = null;
  /** The positions that the query asks for, and the part of them that is searched. */
  readonly #range: Gap;
  readonly #searched: Gap;
  readonly #bounds: Gap;
  readonly #predicates;

  constructor(
    private readonly agent: AgentOfSeveral,
    private readonly query: SeveralQuery,
    index: number,
    floor: readonly Position[] | null,
    private readonly written: WrittenFields,
    private readonly scan: FinderWork,
  ) {
    const { schema, runs, all } = agent;
    this.#range = rangeOf(query, index);
    assertStanding(all, [this.#range.after, jointOf(query.before)?.of[index]]);
    const { after: low, before: high } = this.#range;
    this.#bounds = { after: floor === null ? low : later(floor[index]!, low), before: high };
    this.#searched = this.#range;
    const predicates = query.of[index]!;
    this.#predicates = predicates && preparePredicates({ limit: query.limit, predicates }, schema);
    if (predicates !== null && predicates.length > 0 && runs === all) {
      this.#gaps = gapsOf(agent.key, predicates, agent);
      this.#searched = this.#gaps.trim(this.#range);
    }
    const isEmpty = comparePositions(after(this.#searched.after), this.#searched.before) >= 0;
    const { limit, last } = query;
    // Without a lower bound, a plan goes backward.
    const isLast = query.after === undefined || last === true;
    const bounds = { ...this.#searched, limit, predicates: [], ...(isLast ? { last: true as const } : {}) };
    this.plan = this.#predicates === null || isEmpty ? null : planScan(runs, bounds);
    if (this.plan !== null) this.#filter = new RowGroupFilter(schema, this.#predicates!, scan);
  }

  /** The bytes that are read at most. */
  async estimate(): Promise<number> {
    if (this.plan === null) return 0;
    const size = { fields: this.written.fields, limit: this.query.limit };
    return readingEstimate(this.plan, this.#filter!.pruning, size, this.scan);
  }

  /** Begins the search. The last matches are found before it resolves. */
  async begin(isLast: boolean): Promise<MergedAgent> {
    const { schema, all } = this.agent;
    const clocks = new Clocks(all, schema, this.scan);
    let found = this.#matches();
    if (isLast && found !== null) {
      const kept: Matches[] = [];
      for await (const matches of found) {
        this.count += matches.take;
        kept.push(matches);
      }
      found = given(kept);
    }
    const isAll = this.plan !== null && this.#predicates?.asked.length === 0 && this.agent.runs === all;
    return {
      stream: new AgentStream(this.written, found, clocks),
      cut: isAll ? null : new AgentCut(clocks, this.#bounds),
      after: this.#bounds.after,
    };
  }

  #matches(): AsyncGenerator<Matches, void> | null {
    const { plan, scan, query } = this;
    const predicates = this.#predicates;
    if (plan === null || predicates === null) return null;
    const index = indexOfRuns(plan.runs);
    const isPlain = !index.hasRemote(plan.first, plan.end) && !index.hides(plan.first, plan.end);
    if (predicates.asked.length === 0 && isPlain) return allOf(plan, query.limit, scan);
    const { schema } = this.agent;
    const finder = finderOf(plan, this.#filter!, scan, { schema, predicates, fields: this.written.fields });
    const found = finder.matches(query.limit);
    return this.#gaps === null ? found : this.#noted(found);
  }

  /** Notes where there are no matches. */
  async *#noted(found: AsyncGenerator<Matches, void>): AsyncGenerator<Matches, void> {
    const { runs } = this.agent;
    const { limit } = this.query;
    const { direction } = this.plan!;
    const { after: low, before: high } = this.#searched;
    const gaps = this.#gaps!;
    let first: Position | null = null;
    let last: Position | null = null;
    let count = 0;
    for await (const matches of found) {
      count += matches.take;
      for (const part of partsOf(matches)) {
        if (first === null && direction === 'forward')
          gaps.add({ after: low, before: positionIn(part, part.first) }, runs);
        first ??= positionIn(part, part.first);
        last = positionIn(part, part.end - 1);
      }
      yield matches;
    }
    const isAll = count < limit;
    if (isAll && direction === 'backward') gaps.add({ after: low, before: first ?? high }, runs);
    if (isAll || direction === 'backward') gaps.add({ after: last ?? low, before: high }, runs);
  }
}

/** The first or last `limit` rows of a plan in their order: what a finder finds without filters, if no rows are hidden. */
async function* allOf(
  plan: ScanPlan,
  limit: number,
  { stats, pace }: FinderWork,
): AsyncGenerator<Matches, void> {
  const walk = new UnitWalk(plan);
  const isForward = plan.direction === 'forward';
  const last: Matches[] = [];
  for (let left = limit; left > 0 && walk.rowGroup !== undefined;) {
    await pace.pause();
    const unit = walk.take();
    if (unit === null) continue;
    const rows = unit.ranges.reduce((sum, range) => sum + range.rows, 0);
    const take = Math.min(left, rows);
    left -= take;
    stats.rowGroupsScanned++;
    const matches: Matches = { unit, selection: { kind: 'all' }, skip: isForward ? 0 : rows - take, take };
    if (isForward) yield matches;
    else last.push(matches);
  }
  for (let matches = last.pop(); matches !== undefined; matches = last.pop()) yield matches;
}

/** The positions of an agent that a query asks for. */
export function rangeOf(query: Pick<SeveralQuery, 'after' | 'before'>, index: number): Gap {
  const [low, high] = [jointOf(query.after), jointOf(query.before)];
  const beginning = query.before === undefined ? end : start;
  const highest = high === undefined ? beginning : high.of[index]!;
  return {
    after: low === undefined ? start : low.of[index]!,
    // The cursor's own record is not before it; those at the other positions are.
    before: high === undefined || high.agent === index ? highest : after(highest),
  };
}

async function* given(kept: Matches[]): AsyncGenerator<Matches, void> {
  // Each is removed from the list before it is yielded, so that a long answer frees memory as it proceeds.
  for (let matches = kept.shift(); matches !== undefined; matches = kept.shift()) yield matches;
}

const ofQueries = new WeakMap<
  object,
  { readonly schema: Schema; readonly fields: readonly WrittenFields[] }
>();

/** For each agent the fields of its lines. */
function fieldsOfAgents({ schema, agents, heads }: SeveralSnapshot, query: Query): readonly WrittenFields[] {
  const common = writtenFields(schema, query);
  const known = ofQueries.get(common);
  if (known?.schema === schema) return known.fields;
  const names = common.fields.map((field) => schema.fields[field]!.name);
  const format = query.form?.format ?? 'jsonl';
  const fields = agents.map((agent, k) => fieldsOfAgent(agent, heads[k]!, names, format, heads.length));
  ofQueries.set(common, { schema, fields });
  return fields;
}

/** The fields of an agent's lines. A field that it lacks is written as null, as part of the key of the field after it. */
function fieldsOfAgent(
  { name, schema }: AgentOfSeveral,
  head: string,
  names: readonly string[],
  format: LineFormat,
  agents: number,
): WrittenFields {
  const encoder = new TextEncoder();
  const isCsv = format === 'csv';
  const { keys } = lineKeysOf(names, format);
  const fields: number[] = [];
  const own = [
    encoder.encode(isCsv ? head : `{"_cursor":"${head}`),
    encoder.encode(isCsv ? `,${name}` : `","_agent":"${name}"`),
  ];
  const nothing = encoder.encode(isCsv ? '' : 'null');
  let lacking: Uint8Array[] = [];
  names.forEach((each, i) => {
    const field = schema.fields.findIndex((candidate) => candidate.name === each);
    lacking.push(keys[i]!);
    if (field < 0 && i < names.length - 1) {
      lacking.push(nothing);
      return;
    }
    own.push(Buffer.concat(lacking));
    lacking = [];
    if (field >= 0) fields.push(field);
  });
  const positionsBytes = 17 * agents;
  const fixedBytes = own.reduce((sum, key) => sum + key.length + numberBytesMax, positionsBytes + 3);
  return { schema, fields, keys: { format, keys: own, fixedBytes }, leading: 2 };
}

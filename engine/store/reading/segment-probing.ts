import type { Column } from '../../columns/column.js';
import type { ColumnSpace, RangeSpace } from '../../parquet/column-space.js';
import type { Directory, ReadableFile } from '../disk/directory.js';
import type { SegmentEntry } from '../manifest/manifest.js';
import { FilterProbing } from '../sealed/filter-probing.js';
import { notStored } from '../sealed/filter-question.js';
import { ruling, type Ruling, SegmentRulings } from '../sealed/segment-rulings.js';
import type { Asked, FilterQuestion } from '../sealed/filter-question.js';
import { keptBytesMax, keptRuling, type KeptFilters, type KeptKind } from '../sealed/kept-filters.js';
import type { KeepableFilters } from '../sealed/survey-task.js';
import type { SummaryPlace } from '../sealed/summary-cache.js';
import { decodeSummary, noFilters, SegmentFilters } from '../sealed/segment-filters.js';
import { withFile, type SegmentFooter } from '../sealed/segment-file.js';
import type { BufferPool } from './buffer-pool.js';
import type { FilterAsk } from './filter-ask.js';
import type { ProbedSegment } from '../sealed/probe-task.js';
import type { QueryThreads } from './query-threads.js';
import type { ReadCounters } from './read-counters.js';

/** What the manifest says of a file that has filters: a segment, or the index of an attached file. */
export interface ProbedEntry extends Pick<SegmentEntry, 'footerOffset' | 'summaryBytes' | 'rowGroupRows'> {
  /** Upper bound of the bytes of all its filters of each kind. */
  readonly filterBytes: Readonly<Record<KeptKind, number>>;
}

/** The buffer pool's keys for the filters of one field, and which query missed them first. */
class KeptField {
  /** One-element lists, because the pool looks up lists of keys. */
  readonly keys: Readonly<Record<KeptKind, readonly [string]>>;
  /** Number of the query that first needed filters of this kind which were not in memory. */
  readonly firstMissedBy: Partial<Record<KeptKind, number>> = {};

  constructor(prefix: string, field: number) {
    this.keys = { values: [`${prefix}values/${field}`], grams: [`${prefix}grams/${field}`] };
  }
}

/** Filters that are not in memory and could rule out more row groups. */
interface MissingFilters {
  readonly field: number;
  readonly kind: KeptKind;
}

/** What still has to be asked of the file after the filters in memory have been asked. */
interface LeftToAsk {
  readonly rowGroups: readonly number[];
  /** For each question the stored field; negative where the file's filters cannot add anything. */
  readonly fields: readonly number[];
  readonly missing: readonly MissingFilters[];
}

/**
 * Asks the filters of one segment: first those that the buffer pool has, then those in the file, on threads where there are any. Filters
 * that a second query asks for are read into the pool for later queries.
 */
export class SegmentProbing {
  readonly #directory: Directory;
  readonly #path: string;
  #absolutePath: string | undefined;
  readonly #entry: ProbedEntry;
  readonly #pool: BufferPool;
  readonly #poolPrefix: string;
  /** By the field's index in the segment's schema. */
  readonly #kept = new Map<number, KeptField>();
  #filters: SegmentFilters | undefined;

  /** @param poolPrefix prefix of the keys in the pool; the segment's owner evicts by it */
  constructor(directory: Directory, path: string, entry: ProbedEntry, pool: BufferPool, poolPrefix: string) {
    this.#directory = directory;
    this.#path = path;
    this.#entry = entry;
    this.#pool = pool;
    this.#poolPrefix = poolPrefix;
  }

  /** Absolute path of the file; undefined where other threads cannot read it. */
  get absolutePath(): string | undefined {
    return (this.#absolutePath ??= this.#directory.absolutePath?.(this.#path));
  }

  /** The filters that the segment's footer names. */
  filtersOf(footer: SegmentFooter): SegmentFilters {
    return (this.#filters ??= new SegmentFilters(footer.metadata, this.#entry.rowGroupRows.length));
  }

  /** Drops what is cached here. The owner evicts the filters in the pool. */
  forget(): void {
    this.#filters = undefined;
  }

  /**
   * Does what `AskableFilters.ask` says.
   *
   * @param storedFields for each field of the query's schema its index in the segment, or a value of `notStored`
   * @param footer the segment's footer, if it has been read; required for a segment without a summary
   */
  ask(
    ask: FilterAsk,
    storedFields: readonly number[],
    footer: SegmentFooter | undefined,
  ): Promise<void> | null {
    const { rulings, questions, threads, counters } = ask;
    const fields = questions.map(({ field }, i) => {
      const stored = storedFields[field]!;
      if (stored === notStored.atAll)
        for (const rowGroup of ask.rowGroups) rulings.say(i, rowGroup, ruling.byZone);
      return footer === undefined || this.filtersOf(footer).has(stored) ? stored : notStored.otherwise;
    });
    const path = this.absolutePath;
    const isAskable = fields.some((field) => field >= 0);
    if (isAskable && (threads === null || path === undefined)) return this.#askHere(ask, fields);
    const left = this.#askKept(ask, fields);
    if (threads === null || path === undefined) return null;
    if (left.rowGroups.length === 0 || left.missing.length === 0) return null;
    const segment = this.#described(path, left.fields, footer);
    const answered = threads.probe({ segment, rowGroups: left.rowGroups, rulings }, questions, counters);
    const keeping = left.missing.flatMap(({ field, kind }) => this.#keep(field, kind, threads) ?? []);
    return keeping.length === 0 ? answered : Promise.all([answered, ...keeping]).then(() => undefined);
  }

  /** Asks the filters that are in memory. */
  #askKept({ rowGroups, rulings, questions }: FilterAsk, fields: readonly number[]): LeftToAsk {
    let left = rowGroups;
    const missing: MissingFilters[] = [];
    const toAsk = questions.map((question, i) => {
      const field = fields[i]!;
      const kind =
        field < 0
          ? null
          : this.#askKeptOf(field, question.asked, left, (rowGroup, said) => {
              rulings.say(i, rowGroup, said);
            });
      left = rulings.conclude(i, question, left);
      if (kind === null) return notStored.otherwise;
      missing.push({ field, kind });
      return field;
    });
    return { rowGroups: left, fields: toAsk, missing };
  }

  /** Asks the filters of one field that are in memory. Returns the kind of filters that could rule out more; null where none could. */
  #askKeptOf(
    field: number,
    asked: readonly Asked[],
    rowGroups: readonly number[],
    say: (rowGroup: number, said: Ruling) => void,
  ): KeptKind | null {
    const { keys } = this.#keptField(field);
    const kept = { values: this.#inMemory(keys.values), grams: this.#inMemory(keys.grams) };
    if (kept.values === null && kept.grams === null) return asked[0]!.hash === null ? 'grams' : 'values';
    let isTold = true;
    for (const rowGroup of rowGroups) {
      const said = keptRuling(kept, rowGroup, asked);
      if (said === null) isTold = false;
      else say(rowGroup, said);
    }
    if (isTold) return null;
    return kept.grams === null ? 'grams' : 'values';
  }

  #keptField(field: number): KeptField {
    let known = this.#kept.get(field);
    if (known === undefined) {
      known = new KeptField(this.#poolPrefix, field);
      this.#kept.set(field, known);
    }
    return known;
  }

  #inMemory(keys: readonly [string]): KeptFilters | null {
    return (this.#pool.decodedNow(keys)?.[0] as KeptFilters | undefined) ?? null;
  }

  /**
   * Reads filters into memory for later queries, if an earlier query has asked for them too. Needs a summary, which says where they lie.
   * The promise never rejects; null where there is nothing to wait for.
   */
  #keep(field: number, kind: KeptKind, threads: QueryThreads): Promise<void> | null {
    const { firstMissedBy } = this.#keptField(field);
    const { rowGroupRows, filterBytes } = this.#entry;
    firstMissedBy[kind] ??= threads.query;
    if (this.summary === null || firstMissedBy[kind] === threads.query) return null;
    if (!threads.mayKeep(keptBytesMax(filterBytes[kind], rowGroupRows.length))) return null;
    return this.keep({ field, kind, bytes: filterBytes[kind] }, threads);
  }

  /** Where the segment's summary lies; null where it has none, or where threads cannot read the file. */
  get summary(): SummaryPlace | null {
    const { footerOffset, summaryBytes, rowGroupRows } = this.#entry;
    const path = this.absolutePath;
    if (summaryBytes === 0 || path === undefined) return null;
    return { path, offset: footerOffset - summaryBytes, bytes: summaryBytes, rowGroups: rowGroupRows.length };
  }

  /**
   * Reads filters into the buffer pool, unless it has them or has no room for them. The segment must have a summary. The promise never
   * rejects; null where there is nothing to wait for.
   */
  keep({ field, kind, bytes }: KeepableFilters, threads: QueryThreads): Promise<void> | null {
    const summary = this.summary!;
    const load = (space: ColumnSpace): Promise<Column> =>
      threads.keepFilters({ summary, kind, field }, space as RangeSpace);
    const key = this.#keptField(field).keys[kind][0];
    const sizeBytes = keptBytesMax(bytes, summary.rowGroups);
    const keeping = this.#pool.keepFilters({ key, sizeBytes, isFilter: true, load });
    if (keeping !== null) threads.track(keeping);
    return keeping;
  }

  #described(path: string, fields: readonly number[], footer: SegmentFooter | undefined): ProbedSegment {
    const { footerOffset, summaryBytes, rowGroupRows } = this.#entry;
    return {
      path,
      summary: { offset: footerOffset - summaryBytes, bytes: summaryBytes },
      places: summaryBytes > 0 ? null : { ...noFilters, gramFilters: footer!.metadata.gramFilters },
      rowGroupCount: rowGroupRows.length,
      fields,
    };
  }

  /** Reads and asks the filters on the calling thread. */
  #askHere(
    { rowGroups, rulings, questions, threads, counters }: FilterAsk,
    fields: readonly number[],
  ): Promise<void> {
    const asking = withFile(this.#directory, this.#path, async (file) => {
      this.#filters ??= await this.#readSummary(file, counters);
      if (this.#filters === undefined) return;
      const bytes = rulings.bytesAsking(rowGroups);
      const asked = new SegmentRulings(rulings.rowGroups, questions.length, bytes);
      await probeFile(file, this.#filters, fields, questions, asked, counters);
      rulings.take(rowGroups, bytes);
    }).catch((error: unknown) => rulings.fail(rowGroups, error));
    threads?.track(asking);
    return asking;
  }

  /** The summary; undefined where it is damaged. `logstrata verify` reports such damage. */
  async #readSummary(file: ReadableFile, counters: ReadCounters): Promise<SegmentFilters | undefined> {
    const { footerOffset, summaryBytes, rowGroupRows } = this.#entry;
    const stored = await file.read(footerOffset - summaryBytes, summaryBytes);
    counters.bytesRead += stored.length;
    return decodeSummary(stored, rowGroupRows.length) ?? undefined;
  }
}

async function probeFile(
  file: ReadableFile,
  filters: SegmentFilters,
  fields: readonly number[],
  questions: readonly FilterQuestion[],
  rulings: SegmentRulings,
  counters: ReadCounters,
): Promise<void> {
  const firsts = questions.map(({ asked }) => asked.map(() => 0));
  const probing = new FilterProbing(questions, firsts, counters).probe(filters, fields, rulings);
  let step = probing.next();
  while (step.done !== true) {
    const stored = await file.read(step.value.offset, step.value.bytes);
    counters.bytesRead += stored.length;
    step = probing.next(stored);
  }
}

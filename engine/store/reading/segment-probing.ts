import type { Directory, ReadableFile } from '../disk/directory.js';
import type { SegmentEntry } from '../manifest/manifest.js';
import { probeFilters, ruling, type FilterQuestion, type Ruling } from '../sealed/filter-probing.js';
import { decodeSummary, noFilters, SegmentFilters } from '../sealed/segment-filters.js';
import { withFile, type SegmentFooter } from '../sealed/segment-file.js';
import type { ProbedSegment } from './probe-task.js';
import type { QueryThreads } from './query-threads.js';
import type { ReadCounters } from './read-counters.js';
import { RulingToCome } from './ruling-to-come.js';

/** What the filters of a segment are asked about one of its row groups. */
export interface Probe {
  readonly rowGroup: number;
  /** For each field of the query's schema the stored one; -1 where values were stored otherwise or not at all. */
  readonly storedFields: readonly number[];
  readonly questions: readonly FilterQuestion[];
  /** Null where the thread that asks is to read them itself. */
  readonly threads: QueryThreads | null;
  readonly counters: ReadCounters;
}

type AskedSegment = Omit<ProbedSegment, 'rowGroups'>;

/** Asks the filters of one segment. */
export class SegmentProbing {
  readonly #directory: Directory;
  readonly #path: string;
  readonly #entry: SegmentEntry;
  /** What threads are told of the segment for each query that looks at it; null where none of its filters could tell. */
  readonly #asked = new WeakMap<readonly FilterQuestion[], AskedSegment | null>();
  #filters: SegmentFilters | undefined;

  constructor(directory: Directory, path: string, entry: SegmentEntry) {
    this.#directory = directory;
    this.#path = path;
    this.#entry = entry;
  }

  /** The filters that the segment's footer names. */
  filtersOf(footer: SegmentFooter): SegmentFilters {
    return (this.#filters ??= new SegmentFilters(footer.metadata, this.#entry.rowGroupRows.length));
  }

  /** Gives back what is held in memory. */
  forget(): void {
    this.#filters = undefined;
  }

  /**
   * What the filters say. Throws what reading the file throws; damaged filters rule nothing out.
   *
   * @param footer where it has been read; always of a segment without a summary
   */
  probe(probe: Probe, footer: SegmentFooter | undefined): Ruling | RulingToCome {
    const { rowGroup, storedFields, questions, threads, counters } = probe;
    let asked = this.#asked.get(questions);
    if (asked === undefined) {
      asked = this.#askedOf(questions, storedFields, footer);
      this.#asked.set(questions, asked);
    }
    if (asked === null) return ruling.mayMatch;
    if (threads !== null && asked.path !== '') return threads.probe(asked, rowGroup, questions, counters);
    const { fields } = asked;
    const asking = withFile(this.#directory, this.#path, async (file) => {
      this.#filters ??= await this.#readSummary(file, counters);
      return this.#filters === undefined
        ? ruling.mayMatch
        : probeFile(file, this.#filters, { ...probe, storedFields: fields });
    });
    return tracked(probe, asking);
  }

  #askedOf(
    questions: readonly FilterQuestion[],
    storedFields: readonly number[],
    footer: SegmentFooter | undefined,
  ): AskedSegment | null {
    const fields = questions.map(({ field }) => {
      const stored = storedFields[field]!;
      return footer === undefined || this.filtersOf(footer).has(stored) ? stored : -1;
    });
    if (fields.every((field) => field < 0)) return null;
    const { footerOffset, summaryBytes, rowGroupRows } = this.#entry;
    return {
      path: this.#directory.absolutePath?.(this.#path) ?? '',
      summary: { offset: footerOffset - summaryBytes, bytes: summaryBytes },
      places: summaryBytes > 0 ? null : { ...noFilters, gramFilters: footer!.metadata.gramFilters },
      rowGroupCount: rowGroupRows.length,
      fields,
    };
  }

  /** Undefined where the summary is damaged, which `verify` reports. */
  async #readSummary(file: ReadableFile, counters: ReadCounters): Promise<SegmentFilters | undefined> {
    const { footerOffset, summaryBytes, rowGroupRows } = this.#entry;
    const stored = await file.read(footerOffset - summaryBytes, summaryBytes);
    counters.bytesRead += stored.length;
    return decodeSummary(stored, rowGroupRows.length) ?? undefined;
  }
}

/** What `asking` gives. The query's files stay in use until then, whether or not anybody takes the answer. */
export function tracked({ threads }: Probe, asking: Promise<Ruling>): RulingToCome {
  threads?.track(asking);
  return RulingToCome.of(asking);
}

/** Asks filters in the thread that asks. `storedFields` has the field of each question. */
async function probeFile(
  file: ReadableFile,
  filters: SegmentFilters,
  { rowGroup, storedFields, questions, counters }: Probe,
): Promise<Ruling> {
  const firsts = questions.map(({ asked }) => asked.map(() => 0));
  const probing = probeFilters(filters, [rowGroup], questions, storedFields, firsts, counters);
  let step = probing.next();
  while (step.done !== true) {
    const stored = await file.read(step.value.offset, step.value.bytes);
    counters.bytesRead += stored.length;
    step = probing.next(stored);
  }
  return step.value[0]!;
}

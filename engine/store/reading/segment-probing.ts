import type { Directory, ReadableFile } from '../disk/directory.js';
import type { SegmentEntry } from '../manifest/manifest.js';
import { FilterProbing, ruling, type FilterQuestion } from '../sealed/filter-probing.js';
import { decodeSummary, noFilters, SegmentFilters } from '../sealed/segment-filters.js';
import { withFile, type SegmentFooter } from '../sealed/segment-file.js';
import type { FilterAsk } from './filter-ask.js';
import type { ProbedSegment } from './probe-task.js';
import type { ReadCounters } from './read-counters.js';

/** What is known of a file that has filters: of a segment, or of the index of an attached file. */
export type ProbedEntry = Pick<SegmentEntry, 'footerOffset' | 'summaryBytes' | 'rowGroupRows'>;

/** Asks the filters of one segment. */
export class SegmentProbing {
  readonly #directory: Directory;
  readonly #path: string;
  #absolutePath: string | undefined;
  readonly #entry: ProbedEntry;
  #filters: SegmentFilters | undefined;

  constructor(directory: Directory, path: string, entry: ProbedEntry) {
    this.#directory = directory;
    this.#path = path;
    this.#entry = entry;
  }

  /** Absolute, where other threads can read the file. */
  get absolutePath(): string | undefined {
    return (this.#absolutePath ??= this.#directory.absolutePath?.(this.#path));
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
   * As `AskableFilters.ask`.
   *
   * @param storedFields for each field of the query's schema the stored one; -1 where values were stored otherwise or not at all
   * @param footer where it has been read; always of a segment without a summary
   */
  ask(
    ask: FilterAsk,
    storedFields: readonly number[],
    footer: SegmentFooter | undefined,
  ): Promise<void> | null {
    const fields = ask.questions.map(({ field }) => {
      const stored = storedFields[field]!;
      return footer === undefined || this.filtersOf(footer).has(stored) ? stored : -1;
    });
    if (fields.every((field) => field < 0)) return null;
    const path = this.absolutePath;
    const { rowGroups, rulings, questions, threads, counters } = ask;
    if (threads === null || path === undefined) return this.#askHere(ask, fields);
    const segment = this.#described(path, fields, footer);
    return threads.probe({ segment, rowGroups, rulings }, questions, counters);
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

  /** Reads in the thread that asks. */
  #askHere(
    { rowGroups, rulings, questions, threads, counters }: FilterAsk,
    fields: readonly number[],
  ): Promise<void> {
    const asking = withFile(this.#directory, this.#path, async (file) => {
      this.#filters ??= await this.#readSummary(file, counters);
      if (this.#filters === undefined) return;
      const asked = new Uint8Array(this.#filters.rowGroups);
      for (const rowGroup of rowGroups) asked[rowGroup] = ruling.mayMatch;
      await probeFile(file, this.#filters, fields, questions, asked, counters);
      rulings.take(rowGroups, asked);
    }).catch((error: unknown) => rulings.fail(rowGroups, error));
    threads?.track(asking);
    return asking;
  }

  /** Undefined where the summary is damaged, which `verify` reports. */
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
  rulings: Uint8Array,
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

import type { Directory, ReadableFile } from '../disk/directory.js';
import type { SegmentEntry } from '../manifest/manifest.js';
import { FilterEvaluator } from '../sealed/filter-evaluator.js';
import { checkedPiece, readPiece } from '../sealed/filter-piece.js';
import { notStored } from '../sealed/filter-question.js';
import { decodeSummary, encodeSummary, noSegmentFilters, SegmentFilters } from '../sealed/segment-filters.js';
import { withFile, type SegmentFooter } from '../sealed/segment-file.js';
import { ruling, type Ruling } from '../sealed/segment-rulings.js';
import type { FilterRequest } from './filter-request.js';
import type { AskedSegment } from './filter-probes.js';
import type { ReadCounters } from './read-counters.js';
import { asksValues, WholeFilters } from './whole-filters.js';

/** What the manifest says of a file that has filters: a segment, or the index of an attached file. */
export type ProbedEntry = Pick<SegmentEntry, 'footerOffset' | 'summaryBytes' | 'rowGroupRows'>;

/** Number of values until whole filters are read, which takes as long as some twenty askings. Those of the warm-up count as well. */
const askingsBeforeWhole = 14;

/** More than the fields that a schema can have. */
const fieldsMax = 2 ** 16;
let segments = 0;

/** Asks the filters of one segment what earlier queries have not asked, on threads where there are any. */
export class SegmentProbing {
  #absolutePath: string | undefined;
  /** The place of its first field among known rulings. */
  readonly #place = fieldsMax * segments++;
  /** The filters that the footer names, or a summary that was read here. */
  #filters: SegmentFilters | undefined;
  #whole: WholeFilters | undefined;
  /** Number of times that values were asked for which were not known. */
  #askings = 0;

  /** @param readFooter required for a segment that was written before summaries existed: its footer names the filters */
  constructor(
    private readonly directory: Directory,
    private readonly path: string,
    private readonly entry: ProbedEntry,
    private readonly readFooter?: (counters: ReadCounters) => Promise<SegmentFooter>,
  ) {}

  /** Absolute path of the file; undefined where other threads cannot read it. */
  get absolutePath(): string | undefined {
    return (this.#absolutePath ??= this.directory.absolutePath?.(this.path));
  }

  get #rowGroups(): number {
    return this.entry.rowGroupRows.length;
  }

  /** Drops what is cached here. */
  forget(): void {
    this.#filters = undefined;
    this.#whole?.close();
    this.#whole = undefined;
  }

  /**
   * Does what `FileFilters.ask` says.
   *
   * @param storedFields for each field of the query's schema its index in the segment, or a value of `notStored`
   * @param footer the segment's footer, if it has been read
   */
  ask(
    request: FilterRequest,
    storedFields: readonly number[],
    footer: SegmentFooter | undefined,
  ): Promise<void> | null {
    const { rulings, questions, threads } = request;
    if (footer !== undefined) this.#filters ??= this.#namedBy(footer);
    const fields = questions.map(({ field }, i) => {
      const stored = storedFields[field]!;
      if (stored === notStored.atAll)
        for (const rowGroup of request.rowGroups) rulings.setAnswer(i, rowGroup, ruling.byZone);
      return this.#filters?.of(stored) === null ? notStored.otherwise : stored;
    });
    const known = fields.map((field, i) => threads?.known[i]!.at(this.#place + field));
    const rowGroups = this.#openAfter(request, fields, known);
    if (rowGroups.length === 0) return null;
    if (this.#whole?.ask(questions, fields, rowGroups, rulings) === true) return null;
    this.#readWhole(request, fields);
    const { footerOffset, summaryBytes } = this.entry;
    const path = this.absolutePath;
    const segment = {
      path: path ?? '',
      rowGroups: this.#rowGroups,
      summaryOffset: footerOffset - summaryBytes,
      summaryBytes,
      fields,
    };
    const asked = { segment, place: this.#place, rowGroups, rulings };
    if (threads === null || path === undefined || summaryBytes === 0) return this.#askHere(request, asked);
    return threads.probe(asked);
  }

  /** Has the rulings say what is known. Returns the row groups of which that is too little. */
  #openAfter(
    { rowGroups, rulings, questions }: FilterRequest,
    fields: readonly number[],
    known: readonly (Uint8Array | undefined)[],
  ): readonly number[] {
    let left = rowGroups;
    for (const [i, question] of questions.entries()) {
      const said = fields[i]! < 0 ? undefined : known[i];
      if (said !== undefined) for (const each of left) rulings.setAnswer(i, each, said[each]! as Ruling);
      left = rulings.ruleOut(i, question, left);
    }
    return left.filter((each) =>
      fields.some((field, i) => field >= 0 && rulings.answerTo(i, each) === ruling.unknown),
    );
  }

  /** Begins to read whole filters, once other values have been asked for: most processes ask for a few. */
  #readWhole({ questions, threads, counters }: FilterRequest, fields: readonly number[]): void {
    const wanted = fields.filter((field, i) => field >= 0 && asksValues(questions[i]!));
    if (wanted.length === 0 || this.absolutePath === undefined || ++this.#askings < askingsBeforeWhole)
      return;
    const reading = withFile(this.directory, this.path, async (file) => {
      const filters = (this.#filters ??= await this.#readSummary(file, counters));
      await (this.#whole ??= new WholeFilters(filters)).read(file, wanted);
    }).catch(() => undefined);
    threads?.track(reading);
  }

  /** Reads and asks the filters on the calling thread. */
  #askHere({ questions, threads, counters }: FilterRequest, asked: AskedSegment): Promise<void> {
    const { rowGroups, rulings, segment } = asked;
    const asking = withFile(this.directory, this.path, async (file) => {
      const filters = (this.#filters ??= await this.#readSummary(file, counters));
      const asking = new FilterEvaluator(questions).evaluate(filters, segment.fields, rowGroups, rulings);
      for (let wanted = asking.next(); wanted.done !== true;)
        wanted = asking.next(checkedPiece(wanted.value, await readPiece(file, wanted.value), counters));
      threads?.remember(asked);
    }).catch((error: unknown) => rulings.fail(rowGroups, error));
    threads?.track(asking);
    return asking;
  }

  #namedBy({ metadata }: SegmentFooter): SegmentFilters {
    return new SegmentFilters(encodeSummary(metadata, this.#rowGroups), this.#rowGroups);
  }

  /** The filters that the summary names; none if it is damaged, which `verify` reports. */
  async #readSummary(file: ReadableFile, counters: ReadCounters): Promise<SegmentFilters> {
    const { footerOffset, summaryBytes } = this.entry;
    if (summaryBytes === 0) return this.#namedBy(await this.readFooter!(counters));
    const stored = await file.read(footerOffset - summaryBytes, summaryBytes);
    counters.bytesRead += stored.length;
    return decodeSummary(stored, this.#rowGroups) ?? noSegmentFilters;
  }
}

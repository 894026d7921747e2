import type { Directory, ReadableFile } from '../disk/directory.js';
import type { SegmentEntry } from '../manifest/manifest.js';
import { FilterEvaluator, type PieceSource } from '../sealed/filter-evaluator.js';
import {
  checkPiece,
  countPieces,
  pieceChecksumBytes,
  type FilterPiece,
  type LoadedPiece,
} from '../sealed/filter-piece.js';
import { notStored } from '../sealed/filter-question.js';
import { decodeSummary, encodeSummary, noFilters, SegmentFilters } from '../sealed/segment-filters.js';
import { withFile, type SegmentFooter } from '../sealed/segment-file.js';
import { ruling, SegmentRulings } from '../sealed/segment-rulings.js';
import { probesOf } from './filter-probes.js';
import type { FilterAsk } from './filter-ask.js';
import { SegmentPieces, type PiecePool } from './kept-pieces.js';
import type { ReadCounters } from './read-counters.js';

/** What the manifest says of a file that has filters: a segment, or the index of an attached file. */
export type ProbedEntry = Pick<SegmentEntry, 'footerOffset' | 'summaryBytes' | 'rowGroupRows'>;

/**
 * Asks the filters of one segment: first the pieces that the buffer pool has, then those in the file, on threads where there are any. The
 * pool keeps what threads have read.
 */
export class SegmentProbing {
  readonly #directory: Directory;
  readonly #path: string;
  #absolutePath: string | undefined;
  readonly #entry: ProbedEntry;
  readonly #pool: PiecePool;
  readonly #pieces = new SegmentPieces();
  /**
   * For each field whose filters threads have read, the first query that needed that. What later ones need is read whole, because each
   * needle needs other pieces.
   */
  readonly #firstQueries = new Map<number, number>();
  /** The filters that the footer or a summary on the heap names. */
  #filters: SegmentFilters | undefined;
  /** The filters that the summary in the pool names. */
  #kept: { readonly summary: LoadedPiece; readonly filters: SegmentFilters } | undefined;

  constructor(directory: Directory, path: string, entry: ProbedEntry, pool: PiecePool) {
    this.#directory = directory;
    this.#path = path;
    this.#entry = entry;
    this.#pool = pool;
  }

  /** Absolute path of the file; undefined where other threads cannot read it. */
  get absolutePath(): string | undefined {
    return (this.#absolutePath ??= this.#directory.absolutePath?.(this.#path));
  }

  get #rowGroups(): number {
    return this.#entry.rowGroupRows.length;
  }

  /** The filters that the segment's footer names. */
  filtersOf({ metadata }: SegmentFooter): SegmentFilters {
    this.#filters ??= new SegmentFilters(encodeSummary(metadata, this.#rowGroups), this.#rowGroups);
    return this.#filters;
  }

  /** Drops what is cached here and in the pool. */
  forget(): void {
    this.#filters = this.#kept = undefined;
    this.#pieces.clear();
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
    const evaluator =
      threads === null ? new FilterEvaluator(questions) : probesOf(threads).evaluator(questions);
    const query = evaluator.number;
    const known = footer === undefined ? this.#inMemory(query) : this.filtersOf(footer);
    const fields = questions.map(({ field }, i) => {
      const stored = storedFields[field]!;
      if (stored === notStored.atAll)
        for (const rowGroup of ask.rowGroups) rulings.say(i, rowGroup, ruling.byZone);
      return known !== null && known.of(stored) === null ? notStored.otherwise : stored;
    });
    const path = this.absolutePath;
    const isAskable = fields.some((field) => field >= 0);
    if (isAskable && (threads === null || path === undefined)) return this.#askHere(ask, fields);
    let isSketched = known !== null;
    const find: PieceSource = (piece) => {
      const found = this.#pieces.find(piece, query);
      if (found === null && piece.kind === 'sketches') isSketched = false;
      return found;
    };
    const left =
      known === null && isAskable
        ? fields
        : evaluator.evaluate(known ?? none, fields, ask.rowGroups, rulings, find);
    const rowGroups = ask.rowGroups.filter((rowGroup) => rulings.of(rowGroup) === ruling.mayMatch);
    if (threads === null || path === undefined) return null;
    if (rowGroups.length === 0 || left.every((field) => field < 0)) return null;
    for (const field of left)
      if (field >= 0 && !this.#firstQueries.has(field)) this.#firstQueries.set(field, query);
    const isAgain = left.every((field) => field < 0 || this.#firstQueries.get(field) !== query);
    const segment = { ...this.#described(path, left, known), isSketched, readsWhole: isAgain };
    const asked = { segment, rowGroups, rulings, pieces: this.#pieces, pool: this.#pool };
    return probesOf(threads).probe(asked, questions, counters);
  }

  /** The filters that the summary in the pool names; null if it is not there. They are only valid until the caller yields. */
  #inMemory(query: number): SegmentFilters | null {
    if (this.#filters !== undefined) return this.#filters;
    const { offset, bytes } = this.#summary;
    const summary = this.#pieces.at(offset, query);
    if (summary === null) return null;
    if (this.#kept?.summary !== summary) {
      const stored = summary.bytes.subarray(summary.at, summary.at + bytes);
      this.#kept = { summary, filters: new SegmentFilters(stored, this.#rowGroups) };
    }
    return this.#kept.filters;
  }

  get #summary(): { readonly offset: number; readonly bytes: number } {
    const { footerOffset, summaryBytes } = this.#entry;
    return { offset: footerOffset - summaryBytes, bytes: summaryBytes };
  }

  #described(path: string, fields: readonly number[], known: SegmentFilters | null) {
    // A copy, because memory that is shared is not copied with a message, and the pool may drop it meanwhile.
    const summary = known === null ? this.#summary : known.summary.slice();
    return { path, summary, rowGroupCount: this.#rowGroups, fields };
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
      const evaluator = new FilterEvaluator(questions);
      const pieces = new FilePieces(file, counters);
      for (const rowGroup of rowGroups) {
        do evaluator.evaluate(this.#filters, fields, [rowGroup], asked, pieces.find);
        while (await pieces.readMissing());
        pieces.forgetRowGroup();
      }
      rulings.take(rowGroups, bytes);
    }).catch((error: unknown) => rulings.fail(rowGroups, error));
    threads?.track(asking);
    return asking;
  }

  /** The summary; undefined where it is damaged. `logstrata verify` reports such damage. */
  async #readSummary(file: ReadableFile, counters: ReadCounters): Promise<SegmentFilters | undefined> {
    const { offset, bytes } = this.#summary;
    const stored = await file.read(offset, bytes);
    counters.bytesRead += stored.length;
    return decodeSummary(stored, this.#rowGroups) ?? undefined;
  }
}

/** The filters of a file that has none. */
const none = new SegmentFilters(encodeSummary(noFilters, 0), 0);

/** Pieces of one file's filters that are read one after another, and only those that are needed. */
class FilePieces {
  readonly #file: ReadableFile;
  readonly #counters: ReadCounters;
  /** By their offsets in the file. */
  readonly #read = new Map<number, LoadedPiece & Pick<FilterPiece, 'kind'>>();
  /** The first piece that the evaluator missed. */
  #missing: FilterPiece | undefined;

  constructor(file: ReadableFile, counters: ReadCounters) {
    this.#file = file;
    this.#counters = counters;
  }

  readonly find: PieceSource = (piece) => {
    const found = this.#read.get(piece.offset);
    if (found === undefined) this.#missing ??= piece;
    return found ?? null;
  };

  /** Reads the piece that the evaluator missed first. Returns false if it missed none. */
  async readMissing(): Promise<boolean> {
    const piece = this.#missing;
    if (piece === undefined) return false;
    this.#missing = undefined;
    const { kind, offset, bytes, checksumOffset } = piece;
    const isTogether = checksumOffset === offset + bytes;
    const first = await this.#file.read(offset, bytes + (isTogether ? pieceChecksumBytes : 0));
    const rest = isTogether ? [] : await this.#file.read(checksumOffset, pieceChecksumBytes);
    const stored = new Uint8Array(bytes + pieceChecksumBytes);
    stored.set(first);
    stored.set(rest, first.length);
    countPieces(piece, 1, first.length + rest.length, this.#counters);
    checkPiece(stored, first.length + rest.length);
    this.#read.set(offset, { kind, bytes: stored, at: 0 });
    return true;
  }

  /** Forgets the pieces of a row group. The sketches are those of all row groups. */
  forgetRowGroup(): void {
    for (const [offset, { kind }] of this.#read) if (kind !== 'sketches') this.#read.delete(offset);
  }
}

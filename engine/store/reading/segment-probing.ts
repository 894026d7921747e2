import type { Directory, ReadableFile } from '../disk/directory.js';
import type { SegmentEntry } from '../manifest/manifest.js';
import { FilterEvaluator, type PieceSource } from '../sealed/filter-evaluator.js';
import {
  checkPiece,
  countPiece,
  pieceChecksumBytes,
  type FilterPiece,
  type LoadedPiece,
} from '../sealed/filter-piece.js';
import { notStored } from '../sealed/filter-question.js';
import { decodeSummary, encodeSummary, noSegmentFilters, SegmentFilters } from '../sealed/segment-filters.js';
import { withFile, type SegmentFooter } from '../sealed/segment-file.js';
import { ruling, SegmentRulings, type Ruling } from '../sealed/segment-rulings.js';
import type { FilterAsk } from './filter-ask.js';
import type { AskedSegment } from './filter-probes.js';
import type { ReadCounters } from './read-counters.js';

/** What the manifest says of a file that has filters: a segment, or the index of an attached file. */
export type ProbedEntry = Pick<SegmentEntry, 'footerOffset' | 'summaryBytes' | 'rowGroupRows'>;

/** More than the fields that a schema can have. */
const fieldsMax = 2 ** 16;
let segments = 0;

/** Asks the filters of one segment what earlier queries have not asked, on threads where there are any. */
export class SegmentProbing {
  readonly #directory: Directory;
  readonly #path: string;
  #absolutePath: string | undefined;
  readonly #entry: ProbedEntry;
  /** The place of its first field among known rulings. */
  readonly #place = fieldsMax * segments++;
  /** The filters that the footer names, or a summary that was read here. */
  #filters: SegmentFilters | undefined;

  constructor(directory: Directory, path: string, entry: ProbedEntry) {
    this.#directory = directory;
    this.#path = path;
    this.#entry = entry;
  }

  /** Absolute path of the file; undefined where other threads cannot read it. */
  get absolutePath(): string | undefined {
    return (this.#absolutePath ??= this.#directory.absolutePath?.(this.#path));
  }

  get #rowGroups(): number {
    return this.#entry.rowGroupRows.length;
  }

  /** Drops what is cached here. */
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
    const { rulings, questions, threads } = ask;
    if (footer !== undefined)
      this.#filters ??= new SegmentFilters(encodeSummary(footer.metadata, this.#rowGroups), this.#rowGroups);
    const fields = questions.map(({ field }, i) => {
      const stored = storedFields[field]!;
      if (stored === notStored.atAll)
        for (const rowGroup of ask.rowGroups) rulings.say(i, rowGroup, ruling.byZone);
      return this.#filters?.of(stored) === null ? notStored.otherwise : stored;
    });
    const known = fields.map((field, i) => threads?.known[i]!.at(this.#place + field));
    const rowGroups = this.#openAfter(ask, fields, known);
    if (rowGroups.length === 0) return null;
    const { footerOffset, summaryBytes } = this.#entry;
    const path = this.absolutePath;
    const segment = {
      path: path ?? '',
      rowGroups: this.#rowGroups,
      summaryOffset: footerOffset - summaryBytes,
      summaryBytes,
      fields,
    };
    const asked = { segment, place: this.#place, rowGroups, rulings };
    // Segments written before summaries existed name their filters in the footer.
    if (threads === null || path === undefined || summaryBytes === 0) return this.#askHere(ask, asked);
    return threads.probe(asked);
  }

  /** Has the rulings say what is known. Returns the row groups of which that is too little. */
  #openAfter(
    { rowGroups, rulings, questions }: FilterAsk,
    fields: readonly number[],
    known: readonly (Uint8Array | undefined)[],
  ): readonly number[] {
    let left = rowGroups;
    for (const [i, question] of questions.entries()) {
      const said = fields[i]! < 0 ? undefined : known[i];
      if (said !== undefined) for (const each of left) rulings.say(i, each, said[each]! as Ruling);
      left = rulings.conclude(i, question, left);
    }
    return left.filter((each) =>
      fields.some((field, i) => field >= 0 && rulings.said(i, each) === ruling.unknown),
    );
  }

  /** Reads and asks the filters on the calling thread. */
  #askHere({ questions, threads, counters }: FilterAsk, asked: AskedSegment): Promise<void> {
    const { rowGroups, rulings, segment } = asked;
    const asking = withFile(this.#directory, this.#path, async (file) => {
      const filters = (this.#filters ??= await this.#readSummary(file, counters));
      const bytes = rulings.bytesAsking(rowGroups);
      const own = new SegmentRulings(rulings.rowGroups, questions.length, bytes);
      const evaluator = new FilterEvaluator(questions);
      const pieces = new FilePieces(file, counters);
      for (const rowGroup of rowGroups) {
        while (!evaluator.evaluate(filters, segment.fields, [rowGroup], own, pieces.find))
          await pieces.readMissing();
        pieces.forgetRowGroup();
      }
      rulings.take(rowGroups, bytes);
      threads?.remember(asked);
    }).catch((error: unknown) => rulings.fail(rowGroups, error));
    threads?.track(asking);
    return asking;
  }

  /** The filters that the summary names; none if it is damaged, which `verify` reports. */
  async #readSummary(file: ReadableFile, counters: ReadCounters): Promise<SegmentFilters> {
    const stored = await file.read(
      this.#entry.footerOffset - this.#entry.summaryBytes,
      this.#entry.summaryBytes,
    );
    counters.bytesRead += stored.length;
    return decodeSummary(stored, this.#rowGroups) ?? noSegmentFilters;
  }
}

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

  /** Reads the piece that the evaluator missed first. */
  async readMissing(): Promise<void> {
    const piece = this.#missing!;
    this.#missing = undefined;
    const { kind, offset, bytes, checksumOffset } = piece;
    const isTogether = checksumOffset === offset + bytes;
    const first = await this.#file.read(offset, bytes + (isTogether ? pieceChecksumBytes : 0));
    const rest = isTogether ? [] : await this.#file.read(checksumOffset, pieceChecksumBytes);
    const stored = new Uint8Array(bytes + pieceChecksumBytes);
    stored.set(first);
    stored.set(rest, first.length);
    countPiece(piece, first.length + rest.length, this.#counters);
    checkPiece(stored, first.length + rest.length);
    this.#read.set(offset, { kind, bytes: stored, at: 0 });
  }

  /** Forgets the pieces of a row group. The sketches are those of all row groups. */
  forgetRowGroup(): void {
    for (const [offset, { kind }] of this.#read) if (kind !== 'sketches') this.#read.delete(offset);
  }
}

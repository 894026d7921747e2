import { alignedBytes } from '../../memory/allocator.js';
import { foreignMemory, type MemoryRange } from '../../memory/shared-memory.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { openFiles } from '../disk/open-files.js';
import { FilterEvaluator, type FirstLookups } from './filter-evaluator.js';
import {
  checkPiece,
  countPieces,
  isWhole,
  pieceChecksumBytes,
  piecesOf,
  storedBytes,
  type FilterCounters,
  type FilterPiece,
  type LoadedPiece,
  type StoredFilter,
} from './filter-piece.js';
import type { FilterQuestion } from './filter-question.js';
import { decodeSummary, SegmentFilters } from './segment-filters.js';
import { SegmentRulings } from './segment-rulings.js';

/** A segment in a local file whose filters are asked. */
export interface ProbedSegment {
  /** Absolute path. */
  readonly path: string;
  /** The segment's summary, or where the file has it. */
  readonly summary: Uint8Array | { readonly offset: number; readonly bytes: number };
  readonly rowGroupCount: number;
  /** For each question, the index of the stored field; negative if the segment need not be asked. */
  readonly fields: readonly number[];
  /** Whether the sketches have been asked about all row groups. */
  readonly isSketched: boolean;
  /** Whether whole filters are read, as far as the range has room for them, instead of pieces. */
  readonly readsWhole: boolean;
}

/** A request to ask the filters of some segments all questions of a query. */
export interface ProbeJob {
  readonly questions: readonly FilterQuestion[];
  readonly firsts: FirstLookups;
  readonly segments: readonly ProbedSegment[];
  /** The bytes of the `SegmentRulings` of all segments. Row groups to ask about are `mayMatch`. */
  readonly rulings: Uint8Array<ArrayBuffer>;
  /** Memory to leave the pieces in that are read, as many as it has room for; null for none. */
  readonly range: MemoryRange | null;
}

/** The answers to a `ProbeJob`, and what was read for them. */
export interface ProbeAnswers extends FilterCounters {
  /** The bytes of the job, with the answers and what rules row groups out. */
  readonly rulings: Uint8Array<ArrayBuffer>;
  readonly firsts: FirstLookups;
  /** For each stretch of the file in the range: the segment's index in the job, its offset in the file, its offset in the range, its bytes. */
  readonly kept: Float64Array<ArrayBuffer>;
  /** Bytes of the range from its start that have pieces. */
  readonly keptBytes: number;
}

/** Reads pieces of the filters of one segment after another. */
class PieceReader {
  readonly counters = { gramPiecesRead: 0, valuePiecesRead: 0, bytesRead: 0 };
  readonly kept: number[] = [];
  keptBytes = 0;
  readonly #room: Uint8Array;
  #index = -1;
  #segment: ProbedSegment | undefined;
  /** Where the whole filters of this segment are in the range, by their offsets in the file. */
  readonly #wholes = new Map<number, number>();

  constructor(range: MemoryRange | null) {
    this.#room = range === null ? new Uint8Array(0) : foreignMemory(range).bytesAt(range);
  }

  /** Goes on with the next segment. Returns its filters; null if its summary is damaged, which `verify` reports. */
  next(segment: ProbedSegment): SegmentFilters | null {
    const { path, summary, rowGroupCount } = segment;
    this.#segment = segment;
    this.#index++;
    this.#wholes.clear();
    if (summary instanceof Uint8Array) return new SegmentFilters(summary, rowGroupCount);
    const stored = this.#target(summary.bytes);
    this.counters.bytesRead += openFiles.read(path, summary.offset, stored);
    const filters = decodeSummary(stored, rowGroupCount);
    if (filters !== null) this.#keep(stored, summary.offset);
    return filters;
  }

  /** Reads and checks a piece. Throws the errors of reading a file. */
  readonly read = (piece: FilterPiece): LoadedPiece => {
    const { path, isSketched, readsWhole } = this.#segment!;
    const { offset, bytes, checksumOffset } = piece;
    if (isSketched && piece.kind === 'sketches') return { bytes: new Uint8Array(bytes).fill(0xff), at: 0 };
    const whole = readsWhole ? this.#readWhole(piece) : null;
    if (whole !== null) return { bytes: this.#room, at: whole + offset - piece.place.offset };
    const stored = this.#target(bytes + pieceChecksumBytes);
    const isTogether = checksumOffset === offset + bytes;
    let done = openFiles.read(path, offset, isTogether ? stored : stored.subarray(0, bytes));
    if (!isTogether) done += openFiles.read(path, checksumOffset, stored.subarray(bytes));
    countPieces(piece, 1, done, this.counters);
    if (checkPiece(stored, done)) this.#keep(stored, offset);
    return { bytes: stored, at: 0 };
  };

  /** Reads the value filters of row groups: sketches rule out most row groups, but other ones for each value. */
  readValues(
    filters: SegmentFilters,
    questions: readonly FilterQuestion[],
    rowGroups: readonly number[],
  ): void {
    for (const [i, field] of this.#segment!.fields.entries()) {
      const values = field < 0 ? undefined : filters.of(field)?.values;
      if (values === undefined || questions[i]!.asked.every(({ hash }) => hash === null)) continue;
      for (const rowGroup of rowGroups) {
        const place = values[rowGroup];
        if (place !== undefined) this.#readWhole({ kind: 'values', place });
      }
    }
  }

  /** The offset in the range of a whole filter, all of which is read and checked; null if the range has no room for that. */
  #readWhole(filter: StoredFilter): number | null {
    const { path, rowGroupCount } = this.#segment!;
    const { offset } = filter.place;
    const known = this.#wholes.get(offset);
    if (known !== undefined) return known;
    const at = this.keptBytes;
    const bytes = storedBytes(filter, rowGroupCount);
    const stored = this.#room.subarray(at, at + bytes);
    // Pieces of a file that ends too early are checked one by one.
    if (stored.length < bytes || openFiles.read(path, offset, stored) < bytes) return null;
    const pieces = piecesOf(filter, rowGroupCount);
    countPieces(filter, pieces.length, bytes, this.counters);
    for (const piece of pieces)
      if (!isWhole(stored, piece)) stored.fill(0xff, piece.offset, piece.offset + piece.bytes);
    this.#wholes.set(offset, at);
    this.#keep(stored, offset);
    return at;
  }

  /** Memory to read into: the range as long as it has room. */
  #target(bytes: number): Uint8Array {
    const end = this.keptBytes + bytes;
    if (end <= this.#room.length) return this.#room.subarray(this.keptBytes, end);
    return new Uint8Array(bytes);
  }

  #keep(stored: Uint8Array, offset: number): void {
    if (stored.buffer !== this.#room.buffer) return;
    this.kept.push(this.#index, offset, this.keptBytes, stored.length);
    this.keptBytes = Math.min(this.#room.length, this.keptBytes + alignedBytes(stored.length));
  }
}

/** Asks the filters of segments, one after another. Throws the errors of reading a file. */
export function work({ questions, firsts, segments, rulings, range }: ProbeJob): Finished<ProbeAnswers> {
  const reader = new PieceReader(range);
  const evaluator = new FilterEvaluator(questions, firsts);
  let at = 0;
  for (const segment of segments) {
    const end = at + SegmentRulings.sizeBytes(segment.rowGroupCount, questions.length);
    const own = new SegmentRulings(segment.rowGroupCount, questions.length, rulings.subarray(at, end));
    at = end;
    const filters = reader.next(segment);
    if (filters === null) continue;
    if (segment.readsWhole) reader.readValues(filters, questions, own.left());
    evaluator.evaluate(filters, segment.fields, own.left(), own, reader.read);
  }
  const { counters, keptBytes } = reader;
  const kept = Float64Array.from(reader.kept);
  return {
    result: { rulings, firsts, ...counters, kept, keptBytes },
    transfer: [rulings.buffer, kept.buffer],
  };
}

/** Asks the filters of several segments on a thread. */
export const probeTask: Task<ProbeJob, ProbeAnswers> = { module: builtModule(import.meta.url), work };

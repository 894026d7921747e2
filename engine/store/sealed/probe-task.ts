import { alignedBytes } from '../../memory/allocator.js';
import { foreignMemory, type MemoryRange } from '../../memory/shared-memory.js';
import { probeReadBytes } from '../../terms/limits.js';
import { builtModule, type Finished, type Task } from '../../workers/task.js';
import { openFiles } from '../disk/open-files.js';
import { FilterEvaluator, type FirstLookups } from './filter-evaluator.js';
import {
  checkPiece,
  countPiece,
  pieceChecksumBytes,
  type FilterCounters,
  type FilterPiece,
  type LoadedPiece,
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
  /** For each piece in the range: the segment's index in the job, the piece's offset in the file, and its offset in the range. */
  readonly kept: Float64Array<ArrayBuffer>;
  /** Bytes of the range from its start that have pieces. */
  readonly keptBytes: number;
}

/** Buffer for reads, allocated once, because allocating some kilobytes takes longer than the reads. */
const lastRead = new Uint8Array(probeReadBytes);

/** Reads pieces of the filters of one segment after another. */
class PieceReader {
  readonly counters = { gramPiecesRead: 0, valuePiecesRead: 0, bytesRead: 0 };
  readonly kept: number[] = [];
  keptBytes = 0;
  readonly #room: Uint8Array;
  #path = '';
  #segment = -1;

  constructor(range: MemoryRange | null) {
    this.#room = range === null ? new Uint8Array(0) : foreignMemory(range).bytesAt(range);
  }

  /** Goes on with the next segment. Returns its filters; null if its summary is damaged, which `verify` reports. */
  next({ path, summary, rowGroupCount }: ProbedSegment): SegmentFilters | null {
    this.#path = path;
    this.#segment++;
    if (summary instanceof Uint8Array) return new SegmentFilters(summary, rowGroupCount);
    const stored = this.#target(summary.bytes);
    this.counters.bytesRead += openFiles.read(path, summary.offset, stored);
    const filters = decodeSummary(stored, rowGroupCount);
    if (filters === null) return null;
    if (this.#keep(stored, summary.offset)) return filters;
    return new SegmentFilters(stored.slice(), rowGroupCount);
  }

  /** Reads and checks a piece. Throws the errors of reading a file. */
  readonly read = (piece: FilterPiece): LoadedPiece => {
    const { offset, bytes, checksumOffset } = piece;
    const stored = this.#target(bytes + pieceChecksumBytes);
    const isTogether = checksumOffset === offset + bytes;
    let done = openFiles.read(this.#path, offset, isTogether ? stored : stored.subarray(0, bytes));
    if (!isTogether) done += openFiles.read(this.#path, checksumOffset, stored.subarray(bytes));
    countPiece(piece, done, this.counters);
    if (checkPiece(stored, done)) this.#keep(stored, offset);
    return { bytes: stored, at: 0 };
  };

  /** Memory to read into: the range as long as it has room. */
  #target(bytes: number): Uint8Array {
    const end = this.keptBytes + bytes;
    if (end <= this.#room.length) return this.#room.subarray(this.keptBytes, end);
    return bytes <= lastRead.length ? lastRead.subarray(0, bytes) : new Uint8Array(bytes);
  }

  #keep(stored: Uint8Array, offset: number): boolean {
    if (stored.buffer !== this.#room.buffer) return false;
    this.kept.push(this.#segment, offset, this.keptBytes);
    this.keptBytes = Math.min(this.#room.length, this.keptBytes + alignedBytes(stored.length));
    return true;
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
    if (filters !== null) evaluator.evaluate(filters, segment.fields, own.left(), own, reader.read);
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

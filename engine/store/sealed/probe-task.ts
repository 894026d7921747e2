import { taskIn, type Finished } from '../../workers/task.js';
import { openFiles } from '../disk/open-files.js';
import { FilterEvaluator } from './filter-evaluator.js';
import { checkedPiece, pieceChecksumBytes, type FilterCounters, type FilterPiece } from './filter-piece.js';
import type { FilterQuestion } from './filter-question.js';
import { pieceStoredBytesMax } from './gram-filter.js';
import { decodeSummary, noSegmentFilters } from './segment-filters.js';
import { SegmentRulings } from './segment-rulings.js';

/** A segment in a local file whose filters are asked. */
export interface ProbedSegment {
  /** Absolute path. */
  readonly path: string;
  readonly rowGroups: number;
  readonly summaryOffset: number;
  readonly summaryBytes: number;
  /** For each question, the index of the stored field; negative if the segment need not be asked. */
  readonly fields: readonly number[];
}

/** A request to ask the filters of some segments all questions of a query. */
interface ProbeJob {
  readonly questions: readonly FilterQuestion[];
  /** The segments' paths, and their numbers one segment after another: to send an object for each would take longer than to ask its filters. */
  readonly paths: readonly string[];
  readonly numbers: Float64Array<ArrayBuffer>;
  /** The bytes of the `SegmentRulings` of all segments. Row groups to ask about are `mayMatch`. */
  readonly rulings: Uint8Array<ArrayBuffer>;
}

/** What a job says of segments. */
export function probeJobOf(segments: readonly ProbedSegment[]): Pick<ProbeJob, 'paths' | 'numbers'> {
  const numbers = segments.flatMap(({ rowGroups, summaryOffset, summaryBytes, fields }) => [
    rowGroups,
    summaryOffset,
    summaryBytes,
    ...fields,
  ]);
  return { paths: segments.map(({ path }) => path), numbers: Float64Array.from(numbers) };
}

/** The answers to a `ProbeJob`, and what was read for them. */
interface ProbeAnswers extends FilterCounters {
  /** The bytes of the job, with the answers and what rules row groups out. */
  readonly rulings: Uint8Array<ArrayBuffer>;
}

/** Where a piece is read to, unless it is longer. */
const room = new Uint8Array(pieceStoredBytesMax);

/** Reads and checks a piece. Throws the errors of reading a file. */
function readPiece(path: string, piece: FilterPiece, counters: FilterCounters): Uint8Array {
  const { offset, bytes, checksumOffset } = piece;
  const length = bytes + pieceChecksumBytes;
  const stored = length > room.length ? new Uint8Array(length) : room.subarray(0, length);
  const isTogether = checksumOffset === offset + bytes;
  let done = openFiles.read(path, offset, isTogether ? stored : stored.subarray(0, bytes));
  if (!isTogether) done += openFiles.read(path, checksumOffset, stored.subarray(bytes));
  return checkedPiece(piece, stored.subarray(0, done), counters);
}

/** Asks the filters of segments, one after another. Throws the errors of reading a file. */
export function work({ questions, paths, numbers, rulings }: ProbeJob): Finished<ProbeAnswers> {
  const counters = { gramPiecesRead: 0, valuePiecesRead: 0, bytesRead: 0 };
  const evaluator = new FilterEvaluator(questions);
  let at = 0;
  for (const [i, path] of paths.entries()) {
    const each = numbers.subarray(i * (3 + questions.length));
    const [rowGroups, summaryOffset, summaryBytes] = each as unknown as [number, number, number];
    const end = at + SegmentRulings.sizeBytes(rowGroups, questions.length);
    const own = new SegmentRulings(rowGroups, questions.length, rulings.subarray(at, end));
    at = end;
    const summary = new Uint8Array(summaryBytes);
    counters.bytesRead += openFiles.read(path, summaryOffset, summary);
    // `verify` reports a damaged summary.
    const filters = decodeSummary(summary, rowGroups) ?? noSegmentFilters;
    const asking = evaluator.evaluate(filters, each.subarray(3), own.left(), own);
    for (let wanted = asking.next(); wanted.done !== true;)
      wanted = asking.next(readPiece(path, wanted.value, counters));
  }
  return { result: { rulings, ...counters }, transfer: [rulings.buffer] };
}

/** Asks the filters of several segments on a thread. */
export const probeTask = taskIn(import.meta.url, { work });

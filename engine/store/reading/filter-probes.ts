import { alignedBytes, alignmentBytes } from '../../memory/allocator.js';
import {
  filtersKeptOfQueryBytesMax,
  filtersKeptShare,
  probesOfJobMax,
  probesOfJobMin,
  wholeFilterBytes,
} from '../../terms/limits.js';
import { probedBytesOfRowGroup } from '../../terms/thread-limits.js';
import type { Column } from '../../columns/column.js';
import type { ColumnSpace, RangeSpace } from '../../parquet/column-space.js';
import { FilterEvaluator } from '../sealed/filter-evaluator.js';
import type { FilterQuestion } from '../sealed/filter-question.js';
import { pieceStoredBytesMax } from '../sealed/gram-filter.js';
import { probeTask, type ProbeAnswers, type ProbedSegment, type ProbeJob } from '../sealed/probe-task.js';
import type { SegmentRulings } from '../sealed/segment-rulings.js';
import { PieceRange, type PiecePool, type SegmentPieces } from './kept-pieces.js';
import type { JobQueue } from '../../workers/job-queue.js';
import type { ReadCounters } from './read-counters.js';

/** Row groups of one segment to ask the filters about, and the rulings that receive the answers. */
export interface AskedSegment {
  readonly segment: ProbedSegment;
  readonly rowGroups: readonly number[];
  readonly rulings: SegmentRulings;
  /** Receives the pieces that are read. */
  readonly pieces: SegmentPieces;
  readonly pool: PiecePool;
}

/** The segments that were asked about in one turn of the event loop. */
interface ProbeTurn {
  readonly asked: AskedSegment[];
  readonly answered: Promise<void>;
}

const probes = new WeakMap<JobQueue, FilterProbes>();

/** The probes of the query that has this queue. */
export function probesOf(queue: JobQueue): FilterProbes {
  const known = probes.get(queue) ?? new FilterProbes(queue);
  probes.set(queue, known);
  return known;
}

/** Has threads ask filters for one query, and keeps the pieces that they read in the buffer pool. */
class FilterProbes {
  readonly #queue: JobQueue;
  /** The turn that is still collecting segments; null until the next call of `probe`. */
  #turn: ProbeTurn | null = null;
  #evaluator: FilterEvaluator | null = null;
  /** Bytes of pieces that this query may still keep. */
  #bytesLeft = filtersKeptOfQueryBytesMax;

  constructor(queue: JobQueue) {
    this.#queue = queue;
  }

  /** Answers the questions of the query from pieces in memory. */
  evaluator(questions: readonly FilterQuestion[]): FilterEvaluator {
    if (this.#evaluator?.questions !== questions) this.#evaluator = new FilterEvaluator(questions);
    return this.#evaluator;
  }

  /**
   * Does what `AskableFilters.ask` says, on threads. All requests of one turn of the event loop are sent together, because asking a filter
   * takes far less time than handing a job to a thread.
   */
  probe(asked: AskedSegment, questions: readonly FilterQuestion[], counters: ReadCounters): Promise<void> {
    this.#turn ??= this.#beginTurn(questions, counters);
    this.#turn.asked.push(asked);
    return this.#turn.answered;
  }

  #beginTurn(questions: readonly FilterQuestion[], counters: ReadCounters): ProbeTurn {
    const asked: AskedSegment[] = [];
    const answered = this.#probeAll(asked, questions, counters);
    this.#queue.track(answered);
    return { asked, answered };
  }

  async #probeAll(
    asked: readonly AskedSegment[],
    questions: readonly FilterQuestion[],
    counters: ReadCounters,
  ): Promise<void> {
    await Promise.resolve();
    this.#turn = null;
    const rowGroups = asked.reduce((sum, segment) => sum + segment.rowGroups.length, 0);
    const each = Math.ceil(rowGroups / this.#queue.threadCount);
    const shares = [...sharesOf(asked, Math.min(probesOfJobMax, Math.max(probesOfJobMin, each)))];
    const bytesMax = this.#bytesLeft / shares.length;
    const evaluator = this.evaluator(questions);
    await Promise.all(shares.map((share) => this.#probeShare(evaluator, share, bytesMax, counters)));
  }

  async #probeShare(
    evaluator: FilterEvaluator,
    share: readonly AskedSegment[],
    bytesMax: number,
    counters: ReadCounters,
  ): Promise<void> {
    try {
      const { questions, firsts } = evaluator;
      const answers = await this.#keeping({ questions, firsts, rulings: askedOf(share) }, share, bytesMax);
      evaluator.firsts = answers.firsts;
      counters.gramPiecesRead += answers.gramPiecesRead;
      counters.valuePiecesRead += answers.valuePiecesRead;
      counters.bytesRead += answers.bytesRead;
      let at = 0;
      for (const { rowGroups, rulings } of share) {
        rulings.take(rowGroups, answers.rulings.subarray(at));
        at += rulings.bytes.length;
      }
    } catch (error) {
      for (const { rowGroups, rulings } of share) rulings.fail(rowGroups, error);
    }
  }

  /** Has a thread do a job. What it reads stays in the pool, if that has room now: nothing waits for it. */
  async #keeping(
    job: Omit<ProbeJob, 'segments' | 'range'>,
    share: readonly AskedSegment[],
    bytesMax: number,
  ): Promise<ProbeAnswers> {
    const { pool } = share[0]!;
    const rowGroups = share.reduce((sum, asked) => sum + asked.rowGroups.length, 0);
    const roomBytes = alignedBytes(pool.bytesMax * filtersKeptShare) - alignmentBytes;
    const sizeOf = (whole: boolean): number =>
      Math.floor(Math.min(bytesMax, this.#bytesLeft, readBytesMax(job, share, whole)));
    // Where there is little room, whole filters would only take the place of each other.
    const isRoomy = 2 * sizeOf(true) <= roomBytes;
    const sizeBytes = Math.min(roomBytes, sizeOf(isRoomy));
    const segments = share.map(({ segment }) => {
      return { ...segment, readsWhole: isRoomy && segment.readsWhole };
    });
    const run = (range: ProbeJob['range']): Promise<ProbeAnswers> =>
      this.#queue.run(probeTask, { ...job, segments, range }, [], rowGroups * probedBytesOfRowGroup);
    const pieces = new PieceRange(pool);
    let answers: Promise<ProbeAnswers> | undefined;
    if (sizeBytes < pieceStoredBytesMax) return run(null);
    const load = async (space: ColumnSpace): Promise<Column> => {
      const { memory, address } = space as RangeSpace;
      answers = run(memory.rangeAt(address, sizeBytes));
      return keepPieces(await answers, share, pieces, space as RangeSpace);
    };
    const onGone = (): void => void (pieces.isGone = true);
    const keeping = pool.keepFilters({ key: pieces.keys[0], sizeBytes, onGone, load });
    if (keeping === null) return run(null);
    this.#bytesLeft -= sizeBytes;
    await keeping;
    pieces.dropIfUnused();
    const { keptBytes } = await answers!;
    this.#bytesLeft += sizeBytes - keptBytes;
    return answers!;
  }
}

/** Upper bound of what a job usually reads: whole filters, or two pieces for a text, and the sketches and one piece in eight for a value. */
function readBytesMax(
  { questions }: Pick<ProbeJob, 'questions'>,
  share: readonly AskedSegment[],
  whole: boolean,
): number {
  let bytes = pieceStoredBytesMax;
  for (const { segment, rowGroups } of share) {
    const { summary, rowGroupCount, fields, readsWhole } = segment;
    bytes += questions.length * rowGroupCount * 64 + ('offset' in summary ? summary.bytes : 0);
    for (const { hash } of questions.flatMap(({ asked }, i) => (fields[i]! < 0 ? [] : asked))) {
      const pieces = (hash === null ? 2 : 1 / 8) * pieceStoredBytesMax;
      bytes += rowGroups.length * (whole && readsWhole ? wholeFilterBytes : pieces);
    }
  }
  return Math.ceil(bytes);
}

function keepPieces(
  { kept, keptBytes }: ProbeAnswers,
  share: readonly AskedSegment[],
  pieces: PieceRange,
  space: RangeSpace,
): Column {
  space.filled(Math.max(1, keptBytes));
  const bytes = space.memory.bytesAt({ address: space.address, sizeBytes: keptBytes });
  for (let i = 0; i < kept.length; i += 4) {
    const [segment, offset, at, length] = kept.slice(i, i + 4);
    pieces.add(share[segment!]!.pieces, { offset: offset!, bytes, at: at!, end: offset! + length! });
  }
  // To the pool, they are a column without rows.
  return { kind: 'bytes', length: 0, offsets: new Uint32Array(1), bytes, validity: null };
}

/** Splits requests into shares of `rowGroupsEach` row groups, one job each. The last share may be smaller. */
function* sharesOf(asked: readonly AskedSegment[], rowGroupsEach: number): Generator<AskedSegment[]> {
  let share: AskedSegment[] = [];
  let room = rowGroupsEach;
  for (const segment of asked) {
    const { rowGroups } = segment;
    for (let from = 0; from < rowGroups.length;) {
      const to = Math.min(rowGroups.length, from + room);
      share.push({ ...segment, rowGroups: rowGroups.slice(from, to) });
      room -= to - from;
      from = to;
      if (room > 0) continue;
      yield share;
      share = [];
      room = rowGroupsEach;
    }
  }
  if (share.length > 0) yield share;
}

/** The rulings of the segments one after another, with `mayMatch` for each row group that is asked about. */
function askedOf(share: readonly AskedSegment[]): Uint8Array<ArrayBuffer> {
  const together = new Uint8Array(share.reduce((sum, { rulings }) => sum + rulings.bytes.length, 0));
  let at = 0;
  for (const { rowGroups, rulings } of share) {
    together.set(rulings.bytesAsking(rowGroups), at);
    at += rulings.bytes.length;
  }
  return together;
}

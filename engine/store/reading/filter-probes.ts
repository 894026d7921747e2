import { probesOfJobMax, probesOfJobMin, probedBytesOfRowGroup } from '../../core/limits.js';
import type { FilterQuestion } from '../sealed/filter-question.js';
import { probeJobOf, probeTask, type ProbedSegment } from '../sealed/probe-task.js';
import { ruling, type SegmentRulings } from '../sealed/segment-rulings.js';
import { KnownRulings } from './known-rulings.js';
import type { JobQueue } from '../../workers/job-queue.js';
import type { ReadCounters } from './read-counters.js';

/** Row groups of one segment to ask the filters about, and the rulings that receive the answers. */
export interface AskedSegment {
  readonly segment: ProbedSegment;
  /** The place of the segment's first field among known rulings. */
  readonly place: number;
  readonly rowGroups: readonly number[];
  readonly rulings: SegmentRulings;
}

/** The segments that were asked about in one turn of the event loop. */
interface ProbeTurn {
  readonly asked: AskedSegment[];
  readonly answered: Promise<void>;
}

/** Has threads ask the filters of segments the questions of one query. */
export class FilterProbes {
  /** What is known of each question. */
  readonly known: readonly KnownRulings[];
  /** The turn that is still collecting segments; null until the next call of `probe`. */
  #turn: ProbeTurn | null = null;

  constructor(
    private readonly threads: JobQueue,
    private readonly questions: readonly FilterQuestion[],
    private readonly counters: ReadCounters,
  ) {
    this.known = questions.map(({ asked }) => KnownRulings.of(asked));
  }

  /** Remembers work that uses the query's files. */
  track(work: Promise<unknown>): void {
    this.threads.track(work);
  }

  /** Keeps what filters have said for later queries. */
  remember({ segment, place, rowGroups, rulings }: AskedSegment): void {
    for (const [i, field] of segment.fields.entries())
      for (const rowGroup of field < 0 ? [] : rowGroups) {
        const said = rulings.answerTo(i, rowGroup);
        if (said !== ruling.unknown) this.known[i]!.add(place + field, rulings.rowGroups, rowGroup, said);
      }
  }

  /**
   * Does what `FileFilters.ask` says, on threads. All requests of one turn of the event loop are sent together, because asking a filter
   * takes far less time than handing a job to a thread.
   */
  probe(asked: AskedSegment): Promise<void> {
    this.#turn ??= this.#beginTurn();
    this.#turn.asked.push(asked);
    return this.#turn.answered;
  }

  #beginTurn(): ProbeTurn {
    const asked: AskedSegment[] = [];
    const answered = this.#probeAll(asked);
    this.track(answered);
    return { asked, answered };
  }

  async #probeAll(asked: readonly AskedSegment[]): Promise<void> {
    await Promise.resolve();
    this.#turn = null;
    const rowGroups = asked.reduce((sum, segment) => sum + segment.rowGroups.length, 0);
    const each = Math.ceil(rowGroups / this.threads.threadCount);
    const shares = [...sharesOf(asked, Math.min(probesOfJobMax, Math.max(probesOfJobMin, each)))];
    await Promise.all(shares.map((share) => this.#probeShare(share)));
  }

  async #probeShare(share: readonly AskedSegment[]): Promise<void> {
    try {
      const segments = probeJobOf(share.map(({ segment }) => segment));
      const job = { questions: this.questions, ...segments, rulings: askedOf(share) };
      const rowGroups = share.reduce((sum, asked) => sum + asked.rowGroups.length, 0);
      const answers = await this.threads.run(probeTask, job, [], rowGroups * probedBytesOfRowGroup);
      this.counters.gramPiecesRead += answers.gramPiecesRead;
      this.counters.valuePiecesRead += answers.valuePiecesRead;
      this.counters.bytesRead += answers.bytesRead;
      let at = 0;
      for (const segment of share) {
        segment.rulings.take(segment.rowGroups, answers.rulings.subarray(at));
        at += segment.rulings.bytes.length;
        this.remember(segment);
      }
    } catch (error) {
      for (const { rowGroups, rulings } of share) rulings.fail(rowGroups, error);
    }
  }
}

/** Splits requests into shares of at least `rowGroupsMin` row groups, one job each. The last share may be smaller. */
function* sharesOf(asked: readonly AskedSegment[], rowGroupsMin: number): Generator<AskedSegment[]> {
  let share: AskedSegment[] = [];
  let rowGroups = 0;
  for (const segment of asked) {
    share.push(segment);
    rowGroups += segment.rowGroups.length;
    if (rowGroups < rowGroupsMin) continue;
    yield share;
    share = [];
    rowGroups = 0;
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

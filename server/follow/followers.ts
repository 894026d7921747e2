import type { ServerSettings } from '../../agents/definition/config.js';
import {
  Semaphore,
  type RecordStore,
  type Query,
  type SeveralQuery,
  filtersKey,
} from '../../engine/index.js';
import { catchUpsMax, followLogsBytesMax } from '../http/http-limits.js';
import { describeFailure, ProblemError } from '../http/problem.js';
import type { ResponseHead, TransportResponse } from '../http/transport.js';
import { AnswerWatch } from '../pace/answer-watch.js';
import { type LogBudget, EventStream } from './event-stream.js';
import { FollowGroup } from './follow-group.js';
import type { Followed } from './backlogs.js';
import { Follower } from './follower.js';

/** How often every stream is checked: whether its client still may follow, and whether a comment is due. */
const lookMs = 1000;

/** Settings of `Followers`, and what they need from the server. */
export interface FollowOptions extends Pick<
  ServerSettings,
  'followersMax' | 'queryTimeoutMs' | 'clientRateMin'
> {
  /** The store of an agent, or of several whose names are joined by commas. */
  readonly lookup: (agent: string) => RecordStore | undefined;
  readonly log: (message: string) => void;
}

/** A request to follow. */
export interface FollowRequest {
  readonly agent: string;
  readonly store: RecordStore;
  /** The records that the stream begins with: those after a cursor, or the newest. */
  readonly query: Query;
  readonly head: ResponseHead;
  readonly response: TransportResponse;
  /** Why the client may no longer follow at `nowMs` (ms since the epoch): its token was revoked or has expired. Null while it may. */
  readonly objection?: (nowMs: number) => ProblemError | null;
  /** Called when the stream begins. */
  readonly onBegin?: () => void;
}

/**
 * All clients that follow, in groups that follow the same records. Bounds how many clients follow and how much memory the logs of the
 * groups take, and ends streams whose clients are too slow or may not follow any longer.
 */
export class Followers {
  readonly #watch: AnswerWatch;
  readonly #permits = new Semaphore(catchUpsMax);
  readonly #budget: LogBudget = { bytes: 0 };
  readonly #groups = new Map<string, FollowGroup>();
  readonly #followers = new Set<Follower>();
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: FollowOptions) {
    const { clientRateMin } = options;
    // Streams have no time limit: only the rate of the client is watched.
    this.#watch = new AnswerWatch({ clientRateMin, answerTimeoutMs: Infinity });
  }

  /** Number of clients that follow. */
  get count(): number {
    return this.#followers.size;
  }

  /** Bytes of events that all groups keep for followers that have not taken them. */
  get keptBytes(): number {
    return this.#budget.bytes;
  }

  /**
   * Begins a stream. Throws a `ProblemError` (503) when the most clients follow already, and rejects when the stream can't begin. Later
   * failures end the stream and are logged.
   */
  follow({ agent, store, query, head, response, objection, onBegin }: FollowRequest): Promise<void> {
    const { followersMax, queryTimeoutMs } = this.options;
    if (this.#followers.size >= followersMax)
      throw new ProblemError(503, `${followersMax} clients are following, the maximum`, {
        headers: { 'Retry-After': '5' },
      });
    const followed = { agent, store, query };
    const group = this.#groupOf(followed);
    const stream = new EventStream(
      response,
      head,
      this.#watch.begin((reason) => {
        this.options.log(`a stream was cut off: ${reason.message}`);
        response.break();
      }),
    );
    const follower: Follower = new Follower(
      {
        group,
        followed,
        stream,
        permits: this.#permits,
        timeoutMs: queryTimeoutMs,
        objection: objection ?? ((): null => null),
        onBegin: onBegin ?? ((): void => undefined),
        onOver: () => this.#forget(follower),
        onFailure: (error) => this.options.log(`a stream failed: ${describeFailure(error)}`),
      },
      query.after,
    );
    this.#followers.add(follower);
    this.#timer ??= setInterval(() => this.#look(), lookMs).unref();
    response.whenGone(() => follower.leave());
    return follower.begin(query);
  }

  /** Ends all streams, so that their clients reconnect to another server or later. */
  stop(): void {
    for (const follower of [...this.#followers]) follower.end();
  }

  #groupOf(followed: Followed): FollowGroup {
    const key = keyOf(followed);
    const known = this.#groups.get(key);
    if (known?.isCurrent === true && known.store === followed.store) return known;
    const forget = (): void => {
      if (this.#groups.get(key) === group) this.#groups.delete(key);
    };
    const group: FollowGroup = new FollowGroup(
      followed,
      this.options.queryTimeoutMs,
      { budget: this.#budget, check: () => this.#shrink() },
      forget,
    );
    this.#groups.set(key, group);
    return group;
  }

  /** Halves the largest log, again and again, until the logs of all groups and of their backlogs fit their bound. */
  #shrink(): void {
    while (this.#budget.bytes > followLogsBytesMax) {
      const logs = [...this.#groups.values()].flatMap((group) => [group, ...group.backlogs.all]);
      const largest = logs.reduce((a, b) => (b.spareBytes > a.spareBytes ? b : a));
      if (largest.spareBytes === 0) return;
      largest.shrink(Math.floor(largest.spareBytes / 2));
    }
  }

  #forget(follower: Follower): void {
    this.#followers.delete(follower);
    if (this.#followers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Ends streams that may not go on, because of their token or because the agent has changed; sends a comment to the others if due. */
  #look(): void {
    const nowMs = performance.now();
    for (const follower of [...this.#followers]) {
      const { group, followed, stream } = follower;
      if (follower.isRefused(Date.now())) continue;
      if (group.isCurrent && this.options.lookup(followed.agent) === followed.store) stream.comment(nowMs);
      else follower.end();
    }
  }
}

/** Key of a group: equal for clients that follow the same agent with the same filters and fields. */
function keyOf({ agent, query }: Followed): string {
  const { predicates, of, form } = query as Partial<SeveralQuery>;
  return `${agent} ${filtersKey([predicates, of, form?.fields ?? null])}`;
}

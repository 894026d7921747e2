import { requestPath, type Question } from '../query/question.js';
import type { LogRecord } from '../records/record.js';
import { readRecordLine } from '../records/record-line.js';
import { EventStreamReader, type StreamEvent } from './event-stream.js';
import { FailureError, failureOf, failureOfError, isAborted, type Failure } from './failure.js';
import { readBody, type ServerDoor } from './server-door.js';

/** Records that came before the place that has been followed to. */
export interface BehindNotice {
  readonly count: number;
  readonly lowest: string;
}

/** What a follower tells. */
export interface FollowerEvents {
  /** Records in the order of their cursors, each once. */
  records(records: readonly LogRecord[]): void;
  behind(notice: BehindNotice): void;
  /** The stream is open. */
  opened(): void;
  /** It broke, and is opened again after a pause; or not at all, where only a person can mend it. */
  failed(failure: Failure, isFinal: boolean): void;
}

/** The server sends a comment every 15 s; three of them missing mean that nobody is there. */
const silenceMsMax = 45_000;
const firstPauseMs = 500;
const pauseMsMax = 15_000;

/** Failures that asking again does not mend. */
const finalKinds: readonly Failure['kind'][] = ['token', 'refused', 'forbidden', 'missing', 'request'];

/** Follows what a question matches from behind a cursor on, through breaks of the connection, until it is stopped. */
export class Follower {
  private readonly stopping = new AbortController();
  private pauseMs = firstPauseMs;

  constructor(
    private readonly door: ServerDoor,
    private readonly question: Question,
    private after: string,
    private readonly events: FollowerEvents,
  ) {}

  /** Follows until `stop`. */
  async run(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      try {
        await this.followOnce();
      } catch (error) {
        if (this.stopping.signal.aborted) return;
        const failure = isAborted(error)
          ? failureOf('unreachable', `the server sent nothing for ${silenceMsMax / 1000} s`)
          : failureOfError(error);
        const isFinal = finalKinds.includes(failure.kind);
        this.events.failed(failure, isFinal);
        if (isFinal) return;
      }
      await this.pause();
    }
  }

  stop(): void {
    this.stopping.abort();
  }

  private async followOnce(): Promise<void> {
    const silence = new AbortController();
    const signal = AbortSignal.any([this.stopping.signal, silence.signal]);
    let timer = setTimeout(() => silence.abort(), silenceMsMax);
    try {
      const path = requestPath('query', this.question, [['after', this.after]]);
      const response = await this.door.get(path, { signal, headers: { Accept: 'text/event-stream' } });
      if (response.body === null) throw new FailureError(failureOf('broken', 'the stream has no body'));
      const reader = response.body.getReader();
      const decoder = new TextDecoder();
      const stream = new EventStreamReader();
      this.events.opened();
      for (;;) {
        const { done, value } = await readBody(() => reader.read());
        if (done) throw new FailureError(failureOf('broken', 'the server ended the stream'));
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), silenceMsMax);
        this.pauseMs = firstPauseMs;
        this.take(stream.push(decoder.decode(value, { stream: true })));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  private take(events: readonly StreamEvent[]): void {
    const records: LogRecord[] = [];
    for (const { type, data, id } of events) {
      if (type === 'behind') this.events.behind(JSON.parse(data) as BehindNotice);
      if (type !== 'message' || id <= this.after) continue;
      records.push(readRecordLine(data));
      this.after = id;
    }
    if (records.length > 0) this.events.records(records);
  }

  private pause(): Promise<void> {
    const pauseMs = this.pauseMs;
    this.pauseMs = Math.min(pauseMsMax, pauseMs * 2);
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, pauseMs);
      this.stopping.signal.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

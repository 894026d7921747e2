import { requestPath, type Question } from '../query/question.js';
import type { LogRecord } from '../records/record.js';
import { readRecordLine } from '../records/record-line.js';
import { EventStreamReader, type StreamEvent } from './event-stream.js';
import { FailureError, failureOf, failureOfError, isAborted, type Failure } from './failure.js';
import { readBody, type ServerDoor } from './server-door.js';

/** A notice of records that were inserted before the position that was followed to. */
export interface BehindNotice {
  readonly count: number;
  readonly lowest: string;
}

/** Called by a follower. */
export interface FollowerEvents {
  /** New records in the order of their cursors, each once. */
  records(records: readonly LogRecord[]): void;
  behind(notice: BehindNotice): void;
  /** The stream was opened. */
  opened(): void;
  /** The stream has failed. It is opened again after a pause, unless `isFinal`: then only the user can do something about it. */
  failed(failure: Failure, isFinal: boolean): void;
}

/** Milliseconds without data after which the connection is considered dead. The server sends a comment every 5 s, so several are missing by then. */
const silenceMsMax = 45_000;
const firstPauseMs = 500;
const pauseMsMax = 15_000;

/** Failures for which a retry is useless. */
const finalKinds: readonly Failure['kind'][] = ['token', 'refused', 'forbidden', 'missing', 'request'];

/** Follows the records that match a question after a cursor, until it is stopped. Reconnects when the connection breaks. */
export class Follower {
  private readonly stopping = new AbortController();
  private pauseMs = firstPauseMs;

  constructor(
    private readonly door: ServerDoor,
    private readonly question: Question,
    private after: string,
    private readonly events: FollowerEvents,
  ) {}

  /** Resolves when it was stopped, or has failed finally. */
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

  /** Ends following; no further events are sent. */
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

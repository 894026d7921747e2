import { requestPath, type Question } from './view.js';
import { isBehind, type LogRecord, readRecordLine } from './record.js';
import { FailureError, failureOf, failureOfError, isAborted, type Failure } from './failure.js';
import { readBody, type ServerClient } from './requests.js';
import { pagePath, type PageAsk } from './first-requests.js';

/** Maximum length of a line in characters. The server's own limit for a line of a log is far lower. */
const lineCharsMax = 256 * 1024 * 1024;

/** Splits text that arrives in pieces into lines, in linear time and memory. */
export class LineSplitter {
  private readonly begun: string[] = [];
  private begunChars = 0;

  /**
   * The lines that end in this piece, without `
   * ` or `\r
   * `.
   */
  push(piece: string): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let at = piece.indexOf('\n'); at >= 0; at = piece.indexOf('\n', from)) {
      this.begun.push(piece.slice(from, at));
      const line = this.begun.length === 1 ? this.begun[0]! : this.begun.join('');
      lines.push(line.endsWith('\r') ? line.slice(0, -1) : line);
      this.begun.length = 0;
      this.begunChars = 0;
      from = at + 1;
    }
    if (from < piece.length) this.begin(piece.slice(from));
    return lines;
  }

  /** Whether the text so far ends within a line. */
  get isInside(): boolean {
    return this.begunChars > 0;
  }

  private begin(text: string): void {
    this.begun.push(text);
    this.begunChars += text.length;
    if (this.begunChars > lineCharsMax) throw new RangeError('a line of the answer is too long to be shown');
  }
}

/** One event of a stream. */
export interface StreamEvent {
  /** `message` where the event has no type. */
  readonly type: string;
  readonly data: string;
  /** The id of this event, or of the last event that had one. */
  readonly id: string;
}

/** Maximum length of an event in characters; any record is shorter. */
const eventCharsMax = 256 * 1024 * 1024;

/**
 * Parses server-sent events (HTML standard, "Interpreting an event stream") from text that arrives in pieces, in linear time and memory.
 * Lines end with `
 * ` or `\r
 * `; a lone `\r` is part of its line. Used with fetch, as an EventSource can't send a token.
 */
export class EventStreamReader {
  private readonly lines = new LineSplitter();
  private type = '';
  private data: string[] = [];
  private dataChars = 0;
  private id = '';

  /** The events that end in this piece of text. */
  push(piece: string): StreamEvent[] {
    const events: StreamEvent[] = [];
    for (const line of this.lines.push(piece)) {
      if (line !== '') this.take(line);
      else if (this.data.length > 0) events.push(this.ended());
      else this.type = '';
    }
    return events;
  }

  private take(line: string): void {
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const rest = colon < 0 ? '' : line.slice(colon + 1);
    const value = rest.startsWith(' ') ? rest.slice(1) : rest;
    if (name === 'event') this.type = value;
    if (name === 'id' && !value.includes('\0')) this.id = value;
    if (name !== 'data') return;
    this.data.push(value);
    this.dataChars += value.length + 1;
    if (this.dataChars > eventCharsMax)
      throw new RangeError('an event of the stream is too long to be shown');
  }

  private ended(): StreamEvent {
    const event = { type: this.type === '' ? 'message' : this.type, data: this.data.join('\n'), id: this.id };
    this.type = '';
    this.data = [];
    this.dataChars = 0;
    return event;
  }
}

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
    private readonly server: ServerClient,
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
      const response = await this.server.get(path, { signal, headers: { Accept: 'text/event-stream' } });
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
      if (type !== 'message' || !isBehind(id, this.after)) continue;
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

/** A page of records, oldest first. */
export interface PageAnswer {
  readonly records: readonly LogRecord[];
  /** Whether there are no further records in the requested direction. */
  readonly isEnd: boolean;
  /** The header `Server-Timing`, which tells the cost of the query. */
  readonly timing: string;
}

/** Maximum size of a page in bytes: with records of a megabyte each, a full page would take too much memory. */
const pageBytesMax = 4 * 1024 * 1024;

/** Requests a page. It has fewer records than `limit` where they are large; these are the ones next to the cursor. Throws a FailureError. */
export async function askPage(
  server: ServerClient,
  question: Question,
  ask: PageAsk,
  signal: AbortSignal,
): Promise<PageAnswer> {
  let limit = ask.limit;
  for (;;) {
    const response = await server.get(pagePath(question, { ...ask, limit }), { signal });
    const { records, isCut } = await readRecords(response, pageBytesMax);
    const timing = response.headers.get('Server-Timing') ?? '';
    const isEnd = !isCut && records.length < limit;
    // A response begins with its oldest record. Without `after`, the records next to the cursor (or to the end) come last and were cut off,
    // so the request is repeated with a lower limit.
    if (!isCut || ask.after !== undefined || limit === 1) return { records, isEnd, timing };
    limit = Math.max(1, Math.floor(Math.min(limit, records.length) / 2));
  }
}

/** Records that were read from a response in JSON Lines. */
export interface ReadRecords {
  readonly records: readonly LogRecord[];
  /** Whether reading stopped at the bound, before the end of the response. */
  readonly isCut: boolean;
}

/**
 * Reads the records of a response, at least one, until `bytesMax` is exceeded. Throws a FailureError where the response ends in the middle
 * of a record.
 */
async function readRecords(response: Response, bytesMax: number): Promise<ReadRecords> {
  const records: LogRecord[] = [];
  if (response.body === null) return { records, isCut: false };
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const lines = new LineSplitter();
  let bytes = 0;
  for (;;) {
    const { done, value } = await readBody(() => reader.read());
    if (done) break;
    bytes += value.length;
    for (const line of lines.push(decoder.decode(value, { stream: true })))
      if (line !== '') records.push(readRecordLine(line));
    if (bytes > bytesMax && records.length > 0) {
      await reader.cancel();
      return { records, isCut: true };
    }
  }
  if (lines.isInside)
    throw new FailureError(failureOf('broken', 'the last record of the answer is not whole'));
  return { records, isCut: false };
}

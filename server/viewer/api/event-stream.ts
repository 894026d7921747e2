import { LineSplitter } from './line-splitter.js';

/** One event of a stream. */
export interface StreamEvent {
  /** `message` where the stream does not say. */
  readonly type: string;
  readonly data: string;
  /** The id that the stream said last. */
  readonly id: string;
}

/** Characters of one event; a record is smaller than this. */
const eventCharsMax = 256 * 1024 * 1024;

/**
 * Reads server-sent events (the HTML standard, "Event stream interpretation") from text that comes in pieces, in time and memory in
 * proportion to it. Lines end with `\n` or `\r\n`; a bare `\r` is part of its line. Takes streams by fetch, which can carry a token, as
 * an EventSource can't.
 */
export class EventStreamReader {
  private readonly lines = new LineSplitter();
  private type = '';
  private data: string[] = [];
  private dataChars = 0;
  private id = '';

  /** The events that end in this piece. */
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

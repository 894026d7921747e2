import { LineSplitter } from './line-splitter.js';

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

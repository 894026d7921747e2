import type { LineFormat } from '../../engine/index.js';
import { eventStreamType } from '../follow/follow-request.js';
import type { ResponseHead } from '../http/transport.js';
import { corsHeaders, withVary } from './cors.js';
import { noSniffHeaders } from './problem-response.js';

/** For CSV, `header` says that the first line is a header (RFC 4180). */
const contentTypes: Readonly<Record<LineFormat, string>> = {
  jsonl: 'application/x-ndjson',
  json: 'application/json',
  csv: 'text/csv; charset=utf-8; header=present',
};

/** Makes the heads of answers. With CORS off, all answers of a format share one head object, of which transports cache the bytes. */
export class AnswerHeads {
  readonly #corsOrigin: readonly string[];
  readonly #common: Readonly<Record<LineFormat, ResponseHead>> | undefined;

  constructor(corsOrigin: readonly string[]) {
    this.#corsOrigin = corsOrigin;
    if (corsOrigin.length > 0) return;
    const of = (format: LineFormat): ResponseHead => this.#make(format, undefined);
    this.#common = { jsonl: of('jsonl'), json: of('json'), csv: of('csv') };
  }

  of(format: LineFormat, origin: string | undefined): ResponseHead {
    return this.#common?.[format] ?? this.#make(format, origin);
  }

  #make(format: LineFormat, origin: string | undefined): ResponseHead {
    const cors = withVary(corsHeaders(this.#corsOrigin, origin), 'Accept-Encoding');
    const own = { 'Content-Type': contentTypes[format], 'Cache-Control': 'no-store' };
    return { status: 200, headers: { ...cors, ...own, ...noSniffHeaders } };
  }
}

/** The head of a stream of events. The connection is closed after the stream. `X-Accel-Buffering` keeps nginx from buffering events. */
export function streamHead(cors: Readonly<Record<string, string>>): ResponseHead {
  const headers = {
    ...cors,
    'Content-Type': eventStreamType,
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
    ...noSniffHeaders,
  };
  return { status: 200, headers, closes: true };
}

import type { LineFormat } from '../../engine/index.js';
import { eventStreamType } from '../follow/follow-request.js';
import type { ResponseHead } from '../http/transport.js';
import { corsHeaders, withVary } from './cors.js';
import { noSniffHeaders } from './problem-response.js';

/** RFC 4180 has CSV say whether its first line is a header. */
const contentTypes: Readonly<Record<LineFormat, string>> = {
  jsonl: 'application/x-ndjson',
  json: 'application/json',
  csv: 'text/csv; charset=utf-8; header=present',
};

/** The heads of answers, of which there is one for all of a format where CORS is off. */
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

/** The head of a stream. Its connection is closed behind it. Proxies are not to gather its events. */
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

import { constants, createGzip, gzipSync, type Gzip, type ZlibOptions } from 'node:zlib';
import type { LineFormat, ScanStats } from '../../engine/index.js';
import { eventStreamType } from '../follow/follow-request.js';
import { problemBody, type ProblemError } from '../http/problem.js';
import type { ResponseHead, TransportResponse } from '../http/transport.js';

/** Keeps browsers from guessing a content type: they might take a log line for an HTML page and run its scripts. */
export const noSniffHeaders = { 'X-Content-Type-Options': 'nosniff' };

/** The head of an answer that no cache may keep. */
export function uncachedHead(
  contentType: string,
  others: Readonly<Record<string, string>> = {},
): ResponseHead {
  const headers = { 'Content-Type': contentType, 'Cache-Control': 'no-store', ...noSniffHeaders, ...others };
  return { status: 200, headers };
}

const packedHeaders = new WeakMap<ResponseHead['headers'], ResponseHead['headers']>();

/** The head of the gzip form of an answer. */
export function packed({ status, headers, timing }: ResponseHead): ResponseHead {
  let ours = packedHeaders.get(headers);
  if (ours === undefined) {
    ours = { ...headers, 'Content-Encoding': 'gzip' };
    packedHeaders.set(headers, ours);
  }
  return { status, headers: ours, timing };
}

/** Answers with a problem as JSON (RFC 9457). `headers` are sent in addition to those of the problem. */
export function sendProblem(
  response: TransportResponse,
  problem: ProblemError,
  headers: Readonly<Record<string, string>> = {},
): void {
  void response.send(
    {
      ...uncachedHead('application/problem+json', { ...problem.headers, ...headers }),
      status: problem.status,
      closes: problem.closes,
    },
    Buffer.from(problemBody(problem)),
  );
}

/** For CSV, `header` says that the first line is a header (RFC 4180). */
const contentTypes: Readonly<Record<LineFormat, string>> = {
  jsonl: 'application/x-ndjson',
  json: 'application/json',
  csv: 'text/csv; charset=utf-8; header=present',
};

/** Makes the heads of answers. With CORS off, all answers of a format share one head object, of which transports cache the bytes. */
export class AnswerHeads {
  readonly #common: Readonly<Record<LineFormat, ResponseHead>> | undefined;

  constructor(private readonly corsOrigin: readonly string[]) {
    if (corsOrigin.length > 0) return;
    const of = (format: LineFormat): ResponseHead => this.#make(format, undefined);
    this.#common = { jsonl: of('jsonl'), json: of('json'), csv: of('csv') };
  }

  of(format: LineFormat, origin: string | undefined): ResponseHead {
    return this.#common?.[format] ?? this.#make(format, origin);
  }

  #make(format: LineFormat, origin: string | undefined): ResponseHead {
    const cors = withVary(corsHeaders(this.corsOrigin, origin), 'Accept-Encoding');
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

/**
 * The value of the header `Server-Timing` (W3C Server Timing): what the query has cost up to the first byte of the answer, when the headers
 * are sent. `first` is the time to the first piece, `select` and `write` the parts of it spent finding and writing records. `rows` and
 * `groups` are the rows and row groups scanned so far, `read` the bytes read. Durations are milliseconds.
 */
export function serverTiming(stats: ScanStats, firstMs: number): string {
  return (
    `first;dur=${hundredths(firstMs)}, select;dur=${hundredths(stats.selectMs)}, ` +
    `write;dur=${hundredths(stats.writeMs)}, rows;desc="${stats.rowsScanned} scanned", ` +
    `groups;desc="${stats.rowGroupsScanned} scanned of ${stats.rowGroups}", read;desc="${stats.bytesRead} bytes"`
  );
}

/** A duration with two decimals. `toFixed` takes three times as long, which matters for short answers. */
function hundredths(ms: number): string {
  const all = Math.round(ms * 100);
  const rest = all % 100;
  return `${(all - rest) / 100}.${rest < 10 ? '0' : ''}${rest}`;
}

/** How long a browser may keep a preflight's answer; the answer changes only with the configuration. */
const preflightSeconds = 600;

/**
 * The headers that let a script on another origin read the answer (the Fetch standard, "CORS protocol"). Empty without origins, when CORS
 * is off. Caches must not give the answer for one origin to another, hence `Vary`, unless all origins get the same answer.
 */
export function corsHeaders(origins: readonly string[], origin: string | undefined): Record<string, string> {
  if (origins.length === 0) return {};
  if (origins.includes('*')) return { ...exposed, 'Access-Control-Allow-Origin': '*' };
  if (origin === undefined || !origins.includes(origin)) return { Vary: 'Origin' };
  return { ...exposed, 'Access-Control-Allow-Origin': origin, Vary: 'Origin' };
}

/** Without this header scripts see only a few common headers of an answer. */
const exposed = { 'Access-Control-Expose-Headers': 'Server-Timing, Retry-After, WWW-Authenticate' };

/** Further headers of the answer to a preflight. `*` allows all request headers except `Authorization`, which has to be named. */
export function preflightHeaders(methods: readonly string[]): Record<string, string> {
  return {
    'Access-Control-Allow-Methods': methods.join(', '),
    'Access-Control-Allow-Headers': '*, Authorization',
    'Access-Control-Max-Age': String(preflightSeconds),
  };
}

/** Adds a header name to `Vary`. */
export function withVary(headers: Readonly<Record<string, string>>, name: string): Record<string, string> {
  const vary = headers['Vary'];
  return { ...headers, Vary: vary === undefined ? name : `${vary}, ${name}` };
}

/** Level 6 makes answers a tenth smaller and takes three times as long, which is too slow for the answers of a scan. */
const gzipLevel = 1;

/** More bytes than deflate makes of one piece of an answer in the worst case, so that a write never waits for a read. */
const readableBytesMax = 2 * 1024 * 1024;

const gzipOptions: ZlibOptions & { readonly readableHighWaterMark: number } = {
  level: gzipLevel,
  flush: constants.Z_SYNC_FLUSH,
  readableHighWaterMark: readableBytesMax,
};

/** The gzip form of answers, kept for as long as the answer itself is in use. */
const packedAnswers = new WeakMap<Uint8Array, Uint8Array>();

/**
 * A whole answer as gzip. If several clients get the same answer (as the same object), it is packed once: packing an answer takes ten times
 * as long as reading it.
 */
export function gzippedAtOnce(answer: Uint8Array): Uint8Array {
  let packed = packedAnswers.get(answer);
  if (packed === undefined) {
    packed = gzipSync(answer, { level: gzipLevel });
    packedAnswers.set(answer, packed);
  }
  return packed;
}

/**
 * Packs an answer as gzip, piece by piece. Each piece is flushed, so the client can unpack the records that were found while the scan goes
 * on. If packing fails or the reader stops early, the source of pieces is ended too.
 */
export async function* gzipped(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const gzip = createGzip(gzipOptions);
  // Failures reach the callbacks below. Without a listener they would also end the process.
  gzip.on('error', () => undefined);
  try {
    for await (const piece of pieces) {
      await write(gzip, piece);
      const packed: unknown = gzip.read();
      if (packed instanceof Uint8Array) yield packed;
    }
    gzip.end();
    for await (const packed of gzip as AsyncIterable<Uint8Array>) yield packed;
  } finally {
    gzip.destroy();
  }
}

function write(gzip: Gzip, piece: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    gzip.write(piece, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
}

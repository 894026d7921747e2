import { STATUS_CODES } from 'node:http';
import { type ErrorCode, isLogstrataError, LogstrataError } from '../../engine/index.js';

/** The code of each problem by its status: every status other than 200, 204 and 304 that the route answers with. */
const codes = {
  400: 'invalid',
  401: 'invalid',
  403: 'invalid',
  404: 'not_found',
  405: 'invalid',
  409: 'conflict',
  410: 'gone',
  414: 'limit',
  421: 'invalid',
  429: 'limit',
  431: 'limit',
  500: 'io',
  503: 'closed',
  504: 'timeout',
  505: 'unsupported',
} as const satisfies Readonly<Record<number, ErrorCode>>;

export type ProblemStatus = keyof typeof codes;

/** The statuses of problems. */
export const problemStatuses: readonly string[] = Object.keys(codes);

export interface ProblemExtras {
  /** The query parameter at fault, as the client wrote it (decoded). */
  readonly parameter?: string | undefined;
  /** Headers that belong to the status: `Allow`, `Retry-After`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The connection must not be used for another request. */
  readonly closes?: boolean | undefined;
  /** Further members of the body: extension members of RFC 9457. */
  readonly members?: Readonly<Record<string, unknown>> | undefined;
  readonly cause?: unknown;
}

/**
 * An answer that is not the records: an HTTP status with an RFC 9457 body. The message is its `detail`; the
 * command line prints it as it is.
 */
export class ProblemError extends LogstrataError {
  readonly status: ProblemStatus;
  readonly title: string;
  readonly detail: string;
  readonly parameter: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly closes: boolean;
  readonly members: Readonly<Record<string, unknown>>;
  /** How long (ms) the answer is held back, so that guessing tokens is slow. */
  delayMs = 0;

  constructor(status: ProblemStatus, detail: string, extras: ProblemExtras = {}) {
    super(codes[status], detail, { cause: extras.cause });
    this.name = 'ProblemError';
    this.status = status;
    this.title = reasonPhrase(status);
    this.detail = detail;
    this.parameter = extras.parameter;
    this.headers = extras.headers ?? {};
    this.closes = extras.closes ?? false;
    this.members = extras.members ?? {};
  }
}

/** The problem (400) of a query parameter that can't be understood. It names the parameter. */
export function badParameter(parameter: string, detail: string): ProblemError {
  return new ProblemError(400, detail, { parameter });
}

/** The reason phrase of a status line. */
export function reasonPhrase(status: number): string {
  return STATUS_CODES[status] ?? 'Unknown';
}

/**
 * The body of `application/problem+json` (RFC 9457). `type` is `about:blank`: the status says what kind of problem it
 * is, and nothing that a program needs is told by the type alone. `parameter` and `members` are extension members.
 */
export function problemBody(problem: ProblemError): string {
  const { title, status, detail, parameter, members } = problem;
  return `${JSON.stringify({ type: 'about:blank', title, status, detail, parameter, ...members })}\n`;
}

/** The status of a failure of the archive. */
const statuses: Readonly<Record<ErrorCode, ProblemStatus>> = {
  invalid: 400,
  damaged: 500,
  timeout: 504,
  limit: 503,
  closed: 503,
  cancelled: 503,
  locked: 503,
  conflict: 503,
  unavailable: 503,
  not_found: 500,
  gone: 410,
  exists: 500,
  disk_full: 500,
  io: 500,
  unsupported: 500,
  absent: 500,
};

/** The problem that tells a client why its query failed before the first byte of the answer. Never shows a stack trace. */
export function problemOf(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  if (!isLogstrataError(error)) {
    return new ProblemError(500, 'the server failed; its log has the details', { cause: error });
  }
  const place = error.path === undefined || error.message.includes(error.path) ? '' : ` (${error.path})`;
  const told = `${error.message}${place}`;
  const status = statuses[error.code];
  const detail =
    error.code === 'damaged'
      ? `the archive is damaged: ${told}; "logstrata verify" lists what is lost`
      : told;
  const headers = status === 503 ? { 'Retry-After': '1' } : undefined;
  return new ProblemError(status, detail, { headers, cause: error });
}

/** A failure as a log shows it: the message of an expected failure, the stack trace of a bug. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return isLogstrataError(error) ? error.message : (error.stack ?? error.message);
}

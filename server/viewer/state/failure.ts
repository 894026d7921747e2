/** A failure in words for the user. */
export interface Failure {
  readonly kind: FailureKind;
  readonly title: string;
  /** What the server or the browser reported. */
  readonly detail: string;
  /** What the user can do. */
  readonly advice: string;
}

/** An error that carries a failure to the place where it is shown. */
export class FailureError extends Error {
  constructor(readonly failure: Failure) {
    super(`${failure.title}: ${failure.detail}`);
    this.name = 'FailureError';
  }
}

/** The kinds of failures of requests, distinguished by what the user can do about them. */
const words = {
  unreachable: {
    title: 'The server does not answer',
    advice:
      'Check that `logstrata serve` runs and that this machine can reach it. The page retries by itself.',
  },
  broken: {
    title: 'The answer was cut off',
    advice:
      'The records shown are correct, but there may be more. Ask again; if it happens again, the log of the server says why.',
  },
  token: {
    title: 'The server requires a token',
    advice: 'The operator of the server can make one with `logstrata token new`.',
  },
  refused: {
    title: 'The server does not accept this token',
    advice: 'Enter another one. `logstrata token list` shows all tokens and which have expired.',
  },
  forbidden: {
    title: 'This token does not allow that',
    advice: 'Choose another agent, or enter a token that may read this one.',
  },
  missing: {
    title: 'There is no such agent',
    advice:
      'Choose one of the agents above. A new agent appears once its file is in the agents folder and the server has read it.',
  },
  request: {
    title: 'The server did not understand the query',
    advice: 'Change or remove the filter that it names.',
  },
  reading: {
    title: 'The query would have to read too much',
    advice:
      'Choose a shorter time range, or raise `server.query_bytes_max`, the limit of what one query may read.',
  },
  opening: {
    title: 'The server is starting',
    advice: 'It opens the archive. The page asks again by itself until that is done.',
  },
  busy: {
    title: 'The server is busy',
    advice: 'Ask again in a moment. `server.queries_max` limits how many queries run at once.',
  },
  timeout: {
    title: 'The query exceeded its time limit',
    advice:
      'Choose a shorter time range or a filter that matches fewer records, or raise `server.query_timeout`.',
  },
  damaged: {
    title: 'Records needed for this answer are damaged',
    advice:
      'Run `logstrata verify` to see what is lost, and, while no server runs, `logstrata verify --repair` to put the damage aside. Other times can still be read.',
  },
  server: {
    title: 'The server failed',
    advice: 'The log of the server says why. Ask again once that is fixed.',
  },
} as const satisfies Readonly<Record<string, { readonly title: string; readonly advice: string }>>;

export type FailureKind = keyof typeof words;

/** All kinds of failures. */
export const failureKinds = Object.keys(words) as readonly FailureKind[];

/** Makes a failure of a kind with the reported detail. */
export function failureOf(kind: FailureKind, detail: string): Failure {
  return { kind, detail, ...words[kind] };
}

function kindOf(status: number, detail: string, hasToken: boolean): FailureKind {
  switch (status) {
    case 401:
      return hasToken ? 'refused' : 'token';
    case 403:
      return 'forbidden';
    case 404:
      return 'missing';
    case 429:
    case 503:
      return detail.includes('being opened') ? 'opening' : 'busy';
    case 504:
      return 'timeout';
    case 500:
      return detail.includes('damaged') ? 'damaged' : 'server';
    case 400:
      return detail.includes('may have to read') ? 'reading' : 'request';
    default:
      return status < 500 ? 'request' : 'server';
  }
}

/** Maximum length of a detail in characters. Details of problems are shorter. */
const detailCharsMax = 4000;

/**
 * The failure that a response reports, with the detail of its problem, or with its status where the body is not a problem.
 *
 * @param hasToken whether the request had a token
 */
export async function failureOfResponse(response: Response, hasToken: boolean): Promise<Failure> {
  const text = await response.text().catch(() => '');
  let detail = `status ${response.status}`;
  try {
    const problem = JSON.parse(text) as { detail?: unknown } | null;
    if (typeof problem?.detail === 'string') detail = problem.detail.slice(0, detailCharsMax);
  } catch {
    // Not JSON: a proxy between the page and the server may answer with a page of its own.
  }
  return failureOf(kindOf(response.status, detail, hasToken), detail);
}

/** The failure that an error stands for. Errors of the page itself are shown as such, not as a failure of the server. */
export function failureOfError(error: unknown): Failure {
  if (error instanceof FailureError) return error.failure;
  const detail = error instanceof Error ? error.message : String(error);
  return { ...failureOf('server', detail), title: 'The page could not show the answer' };
}

/** Whether the same request may succeed a moment later. */
export function mayPass(failure: Failure | undefined): boolean {
  return failure !== undefined && ['unreachable', 'opening', 'busy'].includes(failure.kind);
}

/** Whether a request ended because the page has aborted it. */
export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

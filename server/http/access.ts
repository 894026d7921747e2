import { timingSafeEqual } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  failingClientsMax,
  failureDelayMs,
  failureDelayMsMax,
  failuresAtOnce,
  failuresForgottenMs,
  slowedAnswersMax,
  slowedAnswersOfClientMax,
  authorizationCharactersMax,
} from './http-limits.js';
import { ProblemError } from './problem.js';
import {
  digestOf,
  tokenIdOf,
  type ListenerName,
  type Token,
  listenerNames,
  TokenFolder,
} from './token-folder.js';

/** The state of a client that has sent wrong tokens. */
interface FailingClient {
  /** Wrong tokens since the client's count last began at 0. */
  failures: number;
  /** Time of the last wrong token, by the clock of `refuse`. */
  lastMs: number;
  /** Refusals to this client that are being delayed. */
  slowed: number;
}

/**
 * Counts the wrong tokens of each client, and delays the refusals of clients that send many. Only refusals are delayed: a client
 * with a right token is not slowed down by others behind the same address. A delayed refusal holds no query slot.
 */
export class FailedTokens {
  /** By client address, ordered by the time of the last wrong token, oldest first. */
  readonly #clients = new Map<string, FailingClient>();
  /** Refusals that are being delayed, of all clients. */
  #slowed = 0;

  /** @param log is called at a client's 1st, 10th, 100th, … wrong token */
  constructor(private readonly log: (message: string) => void) {}

  /**
   * Counts a wrong token. Returns what it is answered with: `refusal`, delayed if the client has sent many, or 429 where too many refusals
   * are being delayed already.
   *
   * @param nowMs milliseconds of a clock that never goes back
   */
  refuse(client: string, refusal: ProblemError, nowMs: number): ProblemError {
    const failing = this.#count(client, nowMs);
    const beyond = failing.failures - failuresAtOnce;
    if (beyond <= 0) return refusal;
    if (this.#slowed >= slowedAnswersMax || failing.slowed >= slowedAnswersOfClientMax)
      return new ProblemError(429, 'too many requests with wrong tokens', {
        headers: { 'Retry-After': '2' },
      });
    this.#slowed++;
    failing.slowed++;
    refusal.delayMs = Math.min(failureDelayMsMax, failureDelayMs * 2 ** (beyond - 1));
    setTimeout(() => {
      this.#slowed--;
      failing.slowed--;
    }, refusal.delayMs).unref();
    return refusal;
  }

  #count(client: string, nowMs: number): FailingClient {
    const known = this.#clients.get(client);
    this.#clients.delete(client);
    const goesOn = known !== undefined && nowMs - known.lastMs < failuresForgottenMs;
    const failing = known ?? { failures: 0, lastMs: nowMs, slowed: 0 };
    failing.failures = goesOn ? failing.failures + 1 : 1;
    failing.lastMs = nowMs;
    this.#clients.set(client, failing);
    if (this.#clients.size > failingClientsMax) {
      const [oldest] = this.#clients.keys();
      this.#clients.delete(oldest!);
    }
    if (isPowerOfTen(failing.failures))
      this.log(
        `${client} has sent ${failing.failures === 1 ? 'a wrong token' : `${failing.failures} wrong tokens`}`,
      );
    return failing;
  }
}

function isPowerOfTen(count: number): boolean {
  let power = 1;
  while (power < count) power *= 10;
  return power === count;
}

/**
 * The client that sends a request: the holder of a token, or an unnamed client where no token is needed. Says which agents it may
 * query.
 */
export class Caller {
  readonly #agents: ReadonlySet<string> | null;
  /**
   * Why the client may not go on at `nowMs` (milliseconds since the epoch): its token was revoked or has expired since it was let
   * in. Else null.
   */
  readonly objection: (nowMs: number) => ProblemError | null;

  /** @param agents that the client may query; null for all */
  constructor(
    agents: readonly string[] | null,
    objection: (nowMs: number) => ProblemError | null = () => null,
  ) {
    this.#agents = agents === null ? null : new Set(agents);
    this.objection = objection;
  }

  /** Whether there are agents that the client may not query. */
  get isLimited(): boolean {
    return this.#agents !== null;
  }

  /** Whether the client may query the agent. */
  may(agent: string): boolean {
    return this.#agents?.has(agent) ?? true;
  }

  /**
   * Throws 403 for an agent that the token does not cover, whether or not the agent exists, so that the answer does not reveal
   * which agents there are.
   */
  assertMay(agent: string): void {
    if (this.may(agent)) return;
    throw new ProblemError(403, `this token may not read the agent ${JSON.stringify(agent)}`, {
      headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' },
    });
  }

  /** Throws 403 for a response that shows all agents, where the token is for some agents only. */
  assertMayAll(): void {
    if (!this.isLimited) return;
    throw new ProblemError(403, 'this token may read only some agents, but this path shows all of them', {
      headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' },
    });
  }
}

/** The caller of requests that need no token. */
export const anybody = new Caller(null);

/**
 * The caller of a request without a token that is answered although the listener asks for tokens, such as a probe. It may query no
 * agent.
 */
export const stranger = new Caller([]);

/** A token that is accepted at the listener, and the rights of its holder. */
interface KnownToken {
  readonly token: Token;
  readonly caller: Caller;
}

/** Compared with where no token has the claimed id, so that an unknown id takes as long as a known one. No token has this digest. */
const noDigest = Buffer.alloc(32);

/** Checks the tokens of requests to one listener. As long as no token was made for the listener, everybody is let in. */
export class ListenerGuard {
  #tokens: ReadonlyMap<string, KnownToken> = new Map();
  #isAlwaysClosed = false;
  #isRequired = false;
  /** The caller while no token is needed. Once tokens are needed, it is refused as well. */
  readonly #anybody = new Caller(null, () => (this.isClosed ? tokenNeeded() : null));
  /** Number of wrong tokens since the start. */
  failures = 0;

  constructor(
    private readonly listener: ListenerName,
    private readonly failed: FailedTokens,
  ) {}

  /** Whether the listener asks for a token. */
  get isClosed(): boolean {
    return this.#isAlwaysClosed || this.#isRequired || this.#tokens.size > 0;
  }

  /** Makes the listener ask for a token from now on, even if all tokens are removed. */
  close(): void {
    this.#isAlwaysClosed = true;
  }

  /** Replaces the tokens by those of `tokens` that are for this listener, which requires one where `listeners` names it, too. */
  take(tokens: readonly Token[], listeners: readonly ListenerName[] = []): void {
    this.#isRequired = listeners.includes(this.listener);
    const own = tokens.filter(({ listeners }) => listeners.includes(this.listener));
    this.#tokens = new Map(own.map((token) => [token.id, { token, caller: this.#holderOf(token) }]));
  }

  #holderOf({ id, agents }: Token): Caller {
    return new Caller(agents, (nowMs) => {
      if (!this.isClosed) return null;
      const token = this.#tokens.get(id)?.token;
      return token !== undefined && isInForce(token, nowMs) ? null : wrongToken(token);
    });
  }

  /**
   * Returns the caller of a request. Throws 401, which is to be answered after its delay.
   *
   * @param authorization the header; undefined where the request has none
   * @param client address under which wrong tokens are counted
   * @param nowMs milliseconds since the epoch, which decide whether a token has expired
   */
  identify(authorization: string | undefined, client: string, nowMs: number): Caller {
    if (!this.isClosed) return this.#anybody;
    const text = authorization === undefined ? undefined : bearerOf(authorization);
    if (text === undefined) throw tokenNeeded();
    const known = this.#find(text);
    if (known !== undefined && isInForce(known.token, nowMs)) return known.caller;
    this.failures++;
    throw this.failed.refuse(client, wrongToken(known?.token), performance.now());
  }

  /**
   * Finds the token with this text. The comparison takes the same time wherever the text differs, so that the time reveals nothing
   * about a token.
   */
  #find(text: string): KnownToken | undefined {
    const id = tokenIdOf(text);
    if (id === undefined) return undefined;
    const known = this.#tokens.get(id);
    const isEqual = timingSafeEqual(digestOf(text), known?.token.digest ?? noDigest);
    return isEqual ? known : undefined;
  }
}

function tokenNeeded(): ProblemError {
  return new ProblemError(401, 'a token is required: send the header "Authorization: Bearer <token>"', {
    headers: { 'WWW-Authenticate': 'Bearer realm="logstrata"' },
  });
}

/**
 * The token in an `Authorization` header (RFC 6750, section 2.1); undefined where there is none. The case of the scheme is ignored
 * (RFC 9110, section 11.1).
 */
function bearerOf(authorization: string): string | undefined {
  if (authorization.length > authorizationCharactersMax) return undefined;
  const blank = authorization.indexOf(' ');
  if (authorization.slice(0, blank).toLowerCase() !== 'bearer') return undefined;
  return authorization.slice(blank + 1).trim();
}

function isInForce({ expiresMs, revokedMs }: Token, nowMs: number): boolean {
  return revokedMs === null && (expiresMs === null || nowMs < expiresMs);
}

/**
 * The 401 for a wrong token. It says where the token was revoked or has expired, as its holder would otherwise look for a typing mistake.
 * Only a client that knows the whole text of the token is told so.
 */
function wrongToken(token: Token | undefined): ProblemError {
  let detail = 'this token is not known';
  if (token !== undefined && token.revokedMs !== null) detail = `the token ${token.id} was revoked`;
  else if (token !== undefined)
    detail = `the token ${token.id} expired on ${new Date(token.expiresMs!).toISOString().slice(0, 10)}`;
  return new ProblemError(401, detail, {
    headers: {
      'WWW-Authenticate': `Bearer realm="logstrata", error="invalid_token", error_description="${detail}"`,
    },
  });
}

/** What a data folder says of who may ask. */
interface Rights {
  readonly tokens: readonly Token[];
  /** The listeners that require a token. */
  readonly listeners: readonly ListenerName[];
}

/** The tokens of a data folder, which decide who may use the query listener and the console of a server. */
export class Access {
  readonly query: ListenerGuard;
  readonly console: ListenerGuard;
  readonly #location: string;
  readonly #log: (message: string) => void;

  private constructor(location: string, log: (message: string) => void) {
    const failed = new FailedTokens(log);
    this.query = new ListenerGuard('query', failed);
    this.console = new ListenerGuard('console', failed);
    this.#location = location;
    this.#log = log;
  }

  /**
   * Reads the tokens of the data folder at an absolute path; a folder that is still to be made has none. Throws where a token can't be read,
   * as it might be a revoked one.
   */
  static async open(location: string, log: (message: string) => void): Promise<Access> {
    const access = new Access(location, log);
    await access.reload();
    return access;
  }

  /** Reads the tokens again. Throws where one can't be read or the data folder is gone, and keeps the tokens that were read before. */
  async reload(): Promise<readonly Token[]> {
    const { tokens, listeners } = await this.#read();
    for (const guard of [this.query, this.console]) guard.take(tokens, listeners);
    for (const listener of listenerNames) {
      if (tokens.some((token) => token.listeners.includes(listener))) await this.#remember(listener);
      else if (listeners.includes(listener))
        this.#log(
          `the ${listener} listener requires a token, as tokens were made for it, but their files are missing in ${this.#location}/.tokens: ` +
            'restore them, make a token with "logstrata token new", or let everybody in with "logstrata token clear"',
        );
    }
    return tokens;
  }

  /** Tokens that were copied into the folder, or made by an earlier version, came without the file that says that one is required. */
  async #remember(listener: ListenerName): Promise<void> {
    try {
      await (await TokenFolder.open(this.#location)).require([listener]);
    } catch (error) {
      this.#log(
        `${error instanceof Error ? error.message : String(error)}: if the tokens are lost, the ${listener} listener will not require any`,
      );
    }
  }

  /** A text that differs whenever a token was added, removed or revoked, or all were cleared. Throws like `reload`. */
  async fingerprint(): Promise<string> {
    const { tokens, listeners } = await this.#read();
    return [...tokens.map(({ id, revokedMs }) => `${id} ${revokedMs}`), ...listeners].join('\n');
  }

  async #read(): Promise<Rights> {
    // A folder that is still to be made has no tokens; one that is gone, such as an unmounted disk, does not make those here invalid.
    const isNew = !existsSync(this.#location) && !this.query.isClosed && !this.console.isClosed;
    if (isNew) return { tokens: [], listeners: [] };
    const folder = await TokenFolder.open(this.#location);
    return { tokens: await folder.list(), listeners: await folder.listeners() };
  }
}

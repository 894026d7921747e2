import { timingSafeEqual } from 'node:crypto';
import { authorizationCharactersMax } from './access-limits.js';
import { Caller } from './caller.js';
import type { FailedTokens } from './failed-tokens.js';
import { ProblemError } from '../http/problem.js';
import { digestOf, tokenIdOf, type ListenerName, type Token } from './token.js';

/** A token that is accepted at the listener, and the rights of its holder. */
interface KnownToken {
  readonly token: Token;
  readonly caller: Caller;
}

/** Compared with where no token has the claimed id, so that an unknown id takes as long as a known one. No token has this digest. */
const noDigest = Buffer.alloc(32);

/** Checks the tokens of requests to one listener. As long as no token was made for the listener, everybody is let in. */
export class ListenerGuard {
  readonly #listener: ListenerName;
  readonly #failed: FailedTokens;
  #tokens: ReadonlyMap<string, KnownToken> = new Map();
  #isAlwaysClosed = false;
  #isRequired = false;
  /** The caller while no token is needed. Once tokens are needed, it is refused as well. */
  readonly #anybody = new Caller(null, () => (this.isClosed ? tokenNeeded() : null));
  /** Number of wrong tokens since the start. */
  failures = 0;

  constructor(listener: ListenerName, failed: FailedTokens) {
    this.#listener = listener;
    this.#failed = failed;
  }

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
    this.#isRequired = listeners.includes(this.#listener);
    const own = tokens.filter(({ listeners }) => listeners.includes(this.#listener));
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
    throw this.#failed.refuse(client, wrongToken(known?.token), performance.now());
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

import { timingSafeEqual } from 'node:crypto';
import { authorizationCharactersMax } from './access-limits.js';
import { Caller } from './caller.js';
import type { FailedTokens } from './failed-tokens.js';
import { ProblemError } from '../http/problem.js';
import { digestOf, tokenIdOf, type ListenerName, type Token } from './token.js';

/** A token that the listener takes, and its holder's rights. */
interface KnownToken {
  readonly token: Token;
  readonly caller: Caller;
}

/** What is compared where no token has the identity that a text claims: it takes as long, and no text has this digest. */
const noDigest = Buffer.alloc(32);

/** Lets those ask at one listener who have a token for it. Where no token was ever made for it, it lets everybody. */
export class ListenerGuard {
  readonly #listener: ListenerName;
  readonly #failed: FailedTokens;
  #tokens: ReadonlyMap<string, KnownToken> = new Map();
  #isAlwaysClosed = false;
  /** Whoever asks while no token is asked for. */
  readonly #anybody = new Caller(null, () => (this.isClosed ? tokenNeeded() : null));
  /** Wrong tokens so far. */
  failures = 0;

  constructor(listener: ListenerName, failed: FailedTokens) {
    this.#listener = listener;
    this.#failed = failed;
  }

  /** A token is asked for. */
  get isClosed(): boolean {
    return this.#isAlwaysClosed || this.#tokens.size > 0;
  }

  /** From now on a token is asked for also where all were removed. */
  close(): void {
    this.#isAlwaysClosed = true;
  }

  /** From now on these tokens count, as far as they are for this listener. */
  take(tokens: readonly Token[]): void {
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
   * Who asks. Throws a 401, or returns what rejects with it in a while where the client has sent many wrong tokens.
   *
   * @param authorization the header
   * @param client that the request is counted for
   * @param nowMs since the epoch, by which tokens expire
   */
  identify(authorization: string | undefined, client: string, nowMs: number): Caller | Promise<never> {
    if (!this.isClosed) return this.#anybody;
    const text = authorization === undefined ? undefined : bearerOf(authorization);
    if (text === undefined) throw tokenNeeded();
    const known = this.#find(text);
    if (known !== undefined && isInForce(known.token, nowMs)) return known.caller;
    this.failures++;
    return this.#failed.refuse(client, wrongToken(known?.token), performance.now());
  }

  /** The token of this text. How long it takes does not tell how much of the text is right. */
  #find(text: string): KnownToken | undefined {
    const id = tokenIdOf(text);
    if (id === undefined) return undefined;
    const known = this.#tokens.get(id);
    const isEqual = timingSafeEqual(digestOf(text), known?.token.digest ?? noDigest);
    return isEqual ? known : undefined;
  }
}

function tokenNeeded(): ProblemError {
  return new ProblemError(401, 'a token is needed: send the header "Authorization: Bearer <token>"', {
    headers: { 'WWW-Authenticate': 'Bearer realm="logstrata"' },
  });
}

/** The token in a header `Authorization` (RFC 6750, section 2.1); undefined where it has none. Schemes have no case (RFC 9110, section 11.1). */
function bearerOf(authorization: string): string | undefined {
  if (authorization.length > authorizationCharactersMax) return undefined;
  const blank = authorization.indexOf(' ');
  if (authorization.slice(0, blank).toLowerCase() !== 'bearer') return undefined;
  return authorization.slice(blank + 1).trim();
}

function isInForce({ expiresMs, revokedMs }: Token, nowMs: number): boolean {
  return revokedMs === null && (expiresMs === null || nowMs < expiresMs);
}

/** What is wrong with a token. Of one that is over that is told: its holder knew it, and would look for a mistyped one. */
function wrongToken(token: Token | undefined): ProblemError {
  let detail = 'this token is not known here';
  if (token !== undefined && token.revokedMs !== null) detail = `the token ${token.id} was revoked`;
  else if (token !== undefined)
    detail = `the token ${token.id} has expired on ${new Date(token.expiresMs!).toISOString().slice(0, 10)}`;
  return new ProblemError(401, detail, {
    headers: {
      'WWW-Authenticate': `Bearer realm="logstrata", error="invalid_token", error_description="${detail}"`,
    },
  });
}

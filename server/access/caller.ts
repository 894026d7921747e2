import { ProblemError } from '../http/problem.js';

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

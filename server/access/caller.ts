import { ProblemError } from '../http/problem.js';

/** Who asks, as far as that is known: a token's holder, or anybody where none is asked for. */
export class Caller {
  readonly #agents: ReadonlySet<string> | null;
  /** What keeps it from asking at a moment (ms since the epoch), though it has been let in before: a token that was revoked, or has expired. */
  readonly objection: (nowMs: number) => ProblemError | null;

  /** @param agents that it may ask about; null for all */
  constructor(
    agents: readonly string[] | null,
    objection: (nowMs: number) => ProblemError | null = () => null,
  ) {
    this.#agents = agents === null ? null : new Set(agents);
    this.objection = objection;
  }

  /** Whether there is any agent that it may not ask about. */
  get isLimited(): boolean {
    return this.#agents !== null;
  }

  may(agent: string): boolean {
    return this.#agents?.has(agent) ?? true;
  }

  /** Throws the 403 of an agent that the token is not for, whether or not there is one of that name: it does not tell which there are. */
  assertMay(agent: string): void {
    if (this.may(agent)) return;
    throw new ProblemError(403, `this token is not for the agent ${JSON.stringify(agent)}`, {
      headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' },
    });
  }

  /** Throws the 403 of what shows all agents at once. */
  assertMayAll(): void {
    if (!this.isLimited) return;
    throw new ProblemError(403, 'this token is for some agents only, and this shows something of all', {
      headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' },
    });
  }
}

/** Whoever asks where no token is asked for. */
export const anybody = new Caller(null);

/** Who has shown no token where one is asked for, of what is answered all the same. */
export const stranger = new Caller([]);

import { answersPerSlot, admissionWaitMs } from '../http/http-limits.js';
import { ProblemError } from '../http/problem.js';

/** An answer that waits for a slot. */
interface Waiter {
  readonly enter: () => void;
}

/** What one client has of the server. */
interface Share {
  readonly client: string;
  /** Answers that have begun and not ended. */
  answers: number;
  /** Those of them whose scan has a slot. */
  running: number;
  readonly waiting: Waiter[];
}

/**
 * Decides which scans run. A scan needs a slot, of which there are `queriesMax`; while its answer waits for the client it has none.
 * No client gets more than three quarters of the slots or of the answers, and free slots go to the clients in turn. So neither slow clients
 * nor one client with many requests keep others from being answered.
 */
export class Admission {
  readonly #runningMax: number;
  readonly #runningOfClientMax: number;
  readonly #answersMax: number;
  readonly #answersOfClientMax: number;
  /** By client. The first of those that wait is served next. */
  readonly #shares = new Map<string, Share>();
  #answers = 0;
  #running = 0;
  #isStopping = false;

  constructor(queriesMax: number) {
    this.#runningMax = queriesMax;
    this.#runningOfClientMax = threeQuarters(queriesMax);
    this.#answersMax = answersPerSlot * queriesMax;
    this.#answersOfClientMax = threeQuarters(this.#answersMax);
  }

  /**
   * Begins an answer for a client; its slot is asked for by `enter`. Throws a `ProblemError`: 429 when the client, or the server,
   * has too many answers under way, 503 when stopping.
   */
  begin(client: string): Slot {
    this.assertOpen();
    const share = this.#shares.get(client) ?? { client, answers: 0, running: 0, waiting: [] };
    if (this.#answers >= this.#answersMax)
      throw tooMany(`${this.#answersMax} answers are under way, which is the most at once`);
    if (share.answers >= this.#answersOfClientMax)
      throw tooMany(`${share.answers} answers to this address are under way, which is the most for one`);
    this.#shares.set(client, share);
    share.answers++;
    this.#answers++;
    return new Slot(this, share);
  }

  /** Scans that run, answers under way, those that wait for their client included, and scans that wait for a slot. */
  get load(): { readonly running: number; readonly answers: number; readonly waiting: number } {
    let waiting = 0;
    for (const share of this.#shares.values()) waiting += share.waiting.length;
    return { running: this.#running, answers: this.#answers, waiting };
  }

  /** From now on every request is a 503. */
  stop(): void {
    this.#isStopping = true;
  }

  /** Throws the 503 of a server that is stopping. */
  assertOpen(): void {
    if (!this.#isStopping) return;
    throw new ProblemError(503, 'the server is shutting down', {
      headers: { 'Retry-After': '5' },
      closes: true,
    });
  }

  /** Takes a slot for a scan where one is free. */
  tryEnter(share: Share): boolean {
    if (this.#running >= this.#runningMax || share.running >= this.#runningOfClientMax) return false;
    this.#running++;
    share.running++;
    return true;
  }

  /** Takes a slot though none may be free: for a scan that holds memory, which it is to use and give back. */
  enterAnyway(share: Share): void {
    this.#running++;
    share.running++;
  }

  /** Gives a slot back, and lets the next waiting query have it. */
  leave(share: Share): void {
    this.#running--;
    share.running--;
    for (const next of this.#shares.values()) {
      if (next.waiting.length === 0 || !this.tryEnter(next)) continue;
      // The client goes behind the others.
      this.#shares.delete(next.client);
      this.#shares.set(next.client, next);
      next.waiting.shift()!.enter();
      return;
    }
  }

  /** Counts an answer as ended. */
  ended(share: Share): void {
    this.#answers--;
    share.answers--;
    if (share.answers === 0) this.#shares.delete(share.client);
  }

  /** What a client is told that has waited in vain for its first slot. */
  refusal(): ProblemError {
    return tooMany(
      `${this.#runningMax} queries are running, or ${this.#runningOfClientMax} for this address, which is the most at once`,
    );
  }
}

/** The right of one answer to have its scan run. */
export class Slot {
  readonly #admission: Admission;
  readonly #share: Share;
  #state: 'away' | 'waiting' | 'running' | 'ended' = 'away';

  constructor(admission: Admission, share: Share) {
    this.#admission = admission;
    this.#share = share;
  }

  /**
   * Asks for a slot: undefined where it is there at once. Else what is returned resolves when it is. The first time, it rejects with a
   * `ProblemError` (429) when none has become free in a second; an answer that has begun waits as long as it takes.
   */
  enter(): Promise<void> | undefined {
    if (this.#state !== 'away') return undefined;
    if (this.#admission.tryEnter(this.#share)) {
      this.#state = 'running';
      return undefined;
    }
    this.#state = 'waiting';
    return new Promise((resolve) => this.#wait(() => resolve()));
  }

  /** As `enter`, for an answer that has not begun. */
  enterFirst(): Promise<void> | undefined {
    const entering = this.enter();
    if (entering === undefined) return undefined;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.end();
        reject(this.#admission.refusal());
      }, admissionWaitMs);
      void entering.then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Takes a slot again behind a wait for other answers: it is there at once. */
  enterAnyway(): void {
    if (this.#state !== 'away') return;
    this.#state = 'running';
    this.#admission.enterAnyway(this.#share);
  }

  /** Lets others run while the answer waits for its client, or its scan for other answers. */
  leave(): void {
    if (this.#state !== 'running') return;
    this.#state = 'away';
    this.#admission.leave(this.#share);
  }

  /** The answer has ended. Nothing happens the second time. */
  end(): void {
    if (this.#state === 'ended') return;
    const state = this.#state;
    this.#state = 'ended';
    if (state === 'running') this.#admission.leave(this.#share);
    else if (state === 'waiting') this.#forget();
    this.#admission.ended(this.#share);
  }

  #waiter: Waiter | undefined;

  #wait(resolve: () => void): void {
    this.#waiter = {
      enter: () => {
        this.#state = 'running';
        resolve();
      },
    };
    this.#share.waiting.push(this.#waiter);
  }

  #forget(): void {
    const { waiting } = this.#share;
    waiting.splice(waiting.indexOf(this.#waiter!), 1);
  }
}

function threeQuarters(count: number): number {
  return count - Math.floor(count / 4);
}

function tooMany(detail: string): ProblemError {
  return new ProblemError(429, detail, { headers: { 'Retry-After': '1' } });
}

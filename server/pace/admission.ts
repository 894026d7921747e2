import { answersPerSlot, admissionWaitMs } from '../http/http-limits.js';
import { ProblemError } from '../http/problem.js';
import { LogstrataError } from '../../engine/index.js';
import { clientGoneError } from '../http/client-gone.js';
import type { TransportResponse } from '../http/transport.js';

/** A scan that waits for a slot. */
interface Waiter {
  /** Called when the slot has been taken for it. */
  readonly enter: () => void;
}

/** The answers and slots of one client. */
interface Share {
  readonly client: string;
  /** Answers that have begun and not ended. */
  answers: number;
  /** Number of these answers whose scan has a slot. */
  running: number;
  readonly waiting: Waiter[];
}

/**
 * Decides which scans run. A scan needs one of `queriesMax` slots to run, and gives it back while its answer waits for the client. No
 * client gets more than three quarters of the slots or of the answers, and free slots go to the clients in turn. So neither slow clients
 * nor one client with many requests can keep others from being answered.
 */
export class Admission {
  readonly #runningMax: number;
  readonly #runningOfClientMax: number;
  readonly #answersMax: number;
  readonly #answersOfClientMax: number;
  /** By client. The first client in this order that has waiting scans and may have another slot is served next. */
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
   * Begins an answer for a client. It has no slot yet: `Slot.enterFirst` asks for one. Throws a `ProblemError`: 429 when the client or the
   * server has too many answers under way, 503 when the server is stopping.
   */
  begin(client: string): Slot {
    this.assertOpen();
    const share = this.#shares.get(client) ?? { client, answers: 0, running: 0, waiting: [] };
    if (this.#answers >= this.#answersMax)
      throw tooMany(`${this.#answersMax} answers are being sent, the maximum`);
    if (share.answers >= this.#answersOfClientMax)
      throw tooMany(`${share.answers} answers are being sent to this address, the maximum for one address`);
    this.#shares.set(client, share);
    share.answers++;
    this.#answers++;
    return new Slot(this, share);
  }

  /** Number of scans that have a slot, of answers under way (with or without a slot), and of scans that wait for a slot. */
  get load(): { readonly running: number; readonly answers: number; readonly waiting: number } {
    let waiting = 0;
    for (const share of this.#shares.values()) waiting += share.waiting.length;
    return { running: this.#running, answers: this.#answers, waiting };
  }

  /** Refuses every request from now on, with 503. */
  stop(): void {
    this.#isStopping = true;
  }

  /** Throws a `ProblemError` (503) if the server is stopping. */
  assertOpen(): void {
    if (!this.#isStopping) return;
    throw new ProblemError(503, 'the server is shutting down', {
      headers: { 'Retry-After': '5' },
      closes: true,
    });
  }

  /** Takes a slot if one is free and the client may have another. Returns whether it did. */
  tryEnter(share: Share): boolean {
    if (this.#running >= this.#runningMax || share.running >= this.#runningOfClientMax) return false;
    this.#running++;
    share.running++;
    return true;
  }

  /** Takes a slot even if none is free: the scan holds memory that others wait for, so it must go on and give that memory back. */
  enterAnyway(share: Share): void {
    this.#running++;
    share.running++;
  }

  /** Gives a slot back, and hands it to the next waiting scan. */
  leave(share: Share): void {
    this.#running--;
    share.running--;
    for (const next of this.#shares.values()) {
      if (next.waiting.length === 0 || !this.tryEnter(next)) continue;
      // This client is served last among the clients from now on.
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

  /** The problem (429) for a client whose first wait for a slot took too long. */
  refusal(): ProblemError {
    return tooMany(
      `${this.#runningMax} queries are running, or ${this.#runningOfClientMax} for this address, the maximum`,
    );
  }
}

/** One answer's place in the admission. Its scan has a slot between `enter` and `leave`, and may enter again until `end`. */
export class Slot {
  readonly #admission: Admission;
  readonly #share: Share;
  #state: 'away' | 'waiting' | 'running' | 'ended' = 'away';

  constructor(admission: Admission, share: Share) {
    this.#admission = admission;
    this.#share = share;
  }

  /**
   * Asks for a slot. Resolves when the scan has one, however long that takes. Takes it before it returns if one is free.
   */
  async enter(): Promise<void> {
    if (this.#state !== 'away') return;
    if (this.#admission.tryEnter(this.#share)) {
      this.#state = 'running';
      return;
    }
    this.#state = 'waiting';
    await new Promise<void>((resolve) => this.#wait(resolve));
  }

  /**
   * Like `enter`, for an answer that has sent nothing yet. If no slot becomes free within `admissionWaitMs`, ends the answer and rejects
   * with a `ProblemError` (429).
   */
  enterFirst(): Promise<void> {
    const entering = this.enter();
    if (this.#state !== 'waiting') return entering;
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

  /** Takes a slot again at once, even if none is free, after the scan has waited for the memory of other answers. */
  enterAnyway(): void {
    if (this.#state !== 'away') return;
    this.#state = 'running';
    this.#admission.enterAnyway(this.#share);
  }

  /** Gives the slot back while the answer waits for its client, or its scan for the memory of other answers. */
  leave(): void {
    if (this.#state !== 'running') return;
    this.#state = 'away';
    this.#admission.leave(this.#share);
  }

  /** Ends the answer, and gives its slot back. Further calls do nothing. */
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

/** The client that work is done for, and how long the work may take. */
export interface SlotWish {
  readonly client: string;
  readonly response: TransportResponse;
  readonly timeoutMs: number;
  /** Message of the error if the work takes longer. */
  readonly late: string;
}

/**
 * Does work that is no streamed answer in a slot of a client, for as long as it takes. The signal is aborted when the client has gone, and
 * after `timeoutMs`, which waiting for the slot counts toward.
 */
export async function inSlot<T>(
  admission: Admission,
  { client, response, timeoutMs, late }: SlotWish,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const slot = admission.begin(client);
  const abort = new AbortController();
  response.whenGone(() => abort.abort(clientGoneError()));
  const timer = setTimeout(() => abort.abort(new LogstrataError('timeout', late)), timeoutMs);
  try {
    await slot.enterFirst();
    return await work(abort.signal);
  } finally {
    clearTimeout(timer);
    slot.end();
  }
}

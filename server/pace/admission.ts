import { answersPerSlot, admissionWaitMs } from '../http/http-limits.js';
import { ProblemError } from '../http/problem.js';
import { LogstrataError } from '../../engine/index.js';
import { clientGoneError, type TransportResponse } from '../http/transport.js';

/** The answers and slots of one client. */
interface Share {
  readonly client: string;
  /** Answers that have begun and not ended. */
  answers: number;
  /** Number of these answers whose scan has a slot. */
  running: number;
  /** Those whose scan waits for a slot. */
  readonly waiting: Slot[];
}

/** One answer's place in the admission. Its scan runs between `Admission.enter` and `leave`, and may enter again until `end`. */
export interface Slot {
  readonly share: Share;
  state: 'away' | 'waiting' | 'running' | 'ended';
  /** Called when its scan, which has waited, may run. */
  onRunning: () => void;
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
   * Begins an answer for a client. Its scan does not run yet: `enterFirst` asks for that. Throws a `ProblemError`: 429 when the client or the
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
    return { share, state: 'away', onRunning: () => undefined };
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

  /** Lets a scan run. Resolves when it may, however long that takes; at once if a slot is free and the client may have another. */
  async enter(slot: Slot): Promise<void> {
    if (slot.state !== 'away' || this.#tryRun(slot)) return;
    slot.state = 'waiting';
    await new Promise<void>((resolve) => {
      slot.onRunning = resolve;
      slot.share.waiting.push(slot);
    });
  }

  /**
   * Like `enter`, for an answer that has sent nothing yet. If no slot becomes free within `admissionWaitMs`, ends the answer and rejects
   * with a `ProblemError` (429).
   */
  enterFirst(slot: Slot): Promise<void> {
    const entering = this.enter(slot);
    if (slot.state !== 'waiting') return entering;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.end(slot);
        const running = `${this.#runningMax} queries are running, or ${this.#runningOfClientMax} for this address`;
        reject(tooMany(`${running}, the maximum`));
      }, admissionWaitMs);
      void entering.then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /**
   * Lets a scan that has waited for the memory of other answers run again at once, even if no slot is free: it holds memory that others wait
   * for, so it must go on and give that memory back.
   */
  enterAnyway(slot: Slot): void {
    if (slot.state === 'away') this.#run(slot);
  }

  #tryRun(slot: Slot): boolean {
    if (this.#running >= this.#runningMax || slot.share.running >= this.#runningOfClientMax) return false;
    this.#run(slot);
    return true;
  }

  #run(slot: Slot): void {
    slot.state = 'running';
    slot.share.running++;
    this.#running++;
  }

  /** Gives the slot to the next scan that waits, while the answer waits for its client or its scan for the memory of other answers. */
  leave(slot: Slot): void {
    if (slot.state !== 'running') return;
    slot.state = 'away';
    this.#running--;
    slot.share.running--;
    for (const share of this.#shares.values()) {
      const [next] = share.waiting;
      if (next === undefined || !this.#tryRun(next)) continue;
      share.waiting.shift();
      // This client is served last among the clients from now on.
      this.#shares.delete(share.client);
      this.#shares.set(share.client, share);
      next.onRunning();
      return;
    }
  }

  /** Ends the answer, and gives its slot back. Further calls do nothing. */
  end(slot: Slot): void {
    const { state, share } = slot;
    if (state === 'ended') return;
    this.leave(slot);
    slot.state = 'ended';
    if (state === 'waiting') share.waiting.splice(share.waiting.indexOf(slot), 1);
    this.#answers--;
    share.answers--;
    if (share.answers === 0) this.#shares.delete(share.client);
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
    await admission.enterFirst(slot);
    return await work(abort.signal);
  } finally {
    clearTimeout(timer);
    admission.end(slot);
  }
}

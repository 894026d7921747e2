import type { ReadableStore } from '../../engine/archive/reading-store.js';
import { newScanStats } from '../../engine/scan/answer.js';
import type { Query } from '../../engine/scan/query.js';
import { makeSchema, type Schema } from '../../engine/core/schema.js';
import type { PieceIterator, Scan, ScanOptions } from '../../engine/scan/scan.js';

export const scriptedSchema: Schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'status', type: 'int' },
  { name: 'message', type: 'string' },
]);

/** The steps of a scan: pieces to return, promises to wait for, or a failure. */
export type Step = Uint8Array | Promise<unknown> | Error;

class ScriptedLines implements PieceIterator {
  readonly #lines: AsyncGenerator<Uint8Array, void>;
  readonly #pieces: number;
  #given = 0;

  constructor(lines: AsyncGenerator<Uint8Array, void>, pieces: number) {
    this.#lines = lines;
    this.#pieces = pieces;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  get isAtEnd(): boolean {
    return this.#given === this.#pieces;
  }

  async next(): Promise<IteratorResult<Uint8Array, void>> {
    const result = await this.#lines.next();
    this.#given++;
    return result;
  }

  return(): Promise<IteratorResult<Uint8Array, void>> {
    return this.#lines.return();
  }
}

/** An agent's store that plays a script, to test how the route handles any course of a scan. */
export class ScriptedStore implements ReadableStore {
  readonly name = 'scripted';
  /** Can be replaced, like the fields of an agent. */
  schema: Schema;
  readonly #script: (query: Query) => Iterable<Step>;
  /** Counts of scans begun, pieces requested and given, and scans ended. */
  begun = 0;
  given = 0;
  ended = 0;
  lastQuery: Query | undefined;
  lastSignal: AbortSignal | undefined;

  constructor(script: (query: Query) => Iterable<Step>, schema: Schema = scriptedSchema) {
    this.#script = script;
    this.schema = schema;
  }

  scan(query: Query, options: ScanOptions = {}): Promise<Scan> {
    this.lastQuery = query;
    const signal = typeof options.signal === 'function' ? options.signal() : options.signal;
    this.lastSignal = signal;
    const script = this.#script(query);
    // The end of a list is known; that of other scripts is not.
    const lines = new ScriptedLines(
      this.#play(script, signal),
      Array.isArray(script) ? script.length : Infinity,
    );
    return Promise.resolve({ lines, stats: newScanStats() });
  }

  /** Counts are not scripted. */
  count(): Promise<never> {
    throw new Error('a scripted store counts nothing');
  }

  async *#play(script: Iterable<Step>, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array, void> {
    this.begun++;
    try {
      for (const step of script) {
        if (step instanceof Error) throw step;
        if (step instanceof Uint8Array) {
          this.given++;
          yield step;
        } else {
          await untilAborted(step, signal);
        }
      }
    } finally {
      this.ended++;
    }
  }

  snapshot = unused;
  onChange = unused;
  seen = unused;
  scanAdded = unused;
  scanSeen = unused;
  selectRows = unused;
  joined = unused;
  readonly context = undefined as never;
  checkpoints = unused;
  sources = unused;
  append = unused;
  beginLoad = unused;
  beginCursorLoad = unused;
  rejectedFiles = unused;
  lostLoads = unused;
  loads = unused;
  previewRemoval = unused;
  remove = unused;
  rejectedLines = unused;
  attachedFiles = unused;
  attach = unused;
  indexAttached = unused;
  readRows = unused;
  hashFile = unused;
  compact = unused;
  shipFar = unused;
  fetchFar = unused;
  verifyFar = unused;
  backup = unused;
  verify = unused;
  stats = unused;
}

function untilAborted(step: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(signal?.reason instanceof Error ? signal.reason : new Error('aborted'));
    if (signal?.aborted === true) fail();
    signal?.addEventListener('abort', fail);
    step.then(() => resolve(), reject);
  });
}

function unused(): never {
  throw new Error('the route asks an agent for nothing but scans');
}

/** One piece of JSON Lines of about `bytes` bytes, which contains its number. */
export function piece(number: number, bytes = 40): Buffer {
  const head = `{"_cursor":"${number.toString(16).padStart(16, '0')}","message":"`;
  return Buffer.from(`${head}${'x'.repeat(Math.max(0, bytes - head.length - 3))}"}\n`);
}

/** Polls; fails if `what` has not happened after a time that only a hang can take. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  for (const endMs = performance.now() + 60_000; !condition();) {
    if (performance.now() > endMs) throw new Error(`this did not happen: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

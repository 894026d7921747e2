import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** How long a program may take to get ready. It only ends a hang: a busy machine may need a minute. */
const readyMaxMs = 240_000;

/** A program of a test environment, which is ended by its id. */
export class Program {
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  #said = '';
  #isEnding = false;

  constructor(command: string, args: readonly string[], cwd: string) {
    this.#process = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#process.stdout!, this.#process.stderr!])
      stream.on('data', (piece: Buffer) => (this.#said = (this.#said + piece.toString()).slice(-4000)));
    // Only then all that it said has been read.
    this.#ended = once(this.#process, 'close');
  }

  get isRunning(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** Waits until `isReady` returns true. Throws with the last output of a program that ends before that. */
  async ready(isReady: () => Promise<boolean>): Promise<this> {
    for (const end = performance.now() + readyMaxMs; performance.now() < end; await delay(50)) {
      if (await isReady().catch(() => false)) return this;
      if (!this.isRunning) throw await this.#failure();
    }
    throw new Error(`${this.#process.spawnfile} does not get ready: ${this.#said}`);
  }

  /** Ends it, by default like a crash. Throws with its last output if it has ended by itself. */
  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (!this.isRunning && !this.#isEnding) throw await this.#failure();
    this.#isEnding = true;
    this.#process.kill(signal);
    await this.#ended;
  }

  /** Pauses it, and lets it continue. */
  freeze(): void {
    this.#process.kill('SIGSTOP');
  }

  thaw(): void {
    this.#process.kill('SIGCONT');
  }

  async #failure(): Promise<Error> {
    await this.#ended;
    const { spawnfile, exitCode, signalCode } = this.#process;
    return new Error(`${spawnfile} has ended by itself with ${exitCode ?? signalCode}: ${this.#said}`);
  }
}

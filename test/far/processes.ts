import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A program of a test environment, which is ended by its id. */
export class Program {
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  #said = '';

  constructor(command: string, args: readonly string[], cwd: string) {
    this.#process = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#process.stdout!, this.#process.stderr!])
      stream.on('data', (piece: Buffer) => (this.#said = (this.#said + piece.toString()).slice(-4000)));
    this.#ended = once(this.#process, 'exit');
  }

  get isRunning(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** Waits until `isReady` returns true. Throws with the last output of a program that ends before that. */
  async ready(isReady: () => Promise<boolean>): Promise<this> {
    for (let attempt = 0; attempt < 600; attempt++) {
      if (await isReady().catch(() => false)) return this;
      if (!this.isRunning) throw new Error(`${this.#process.spawnfile} has ended: ${this.#said}`);
      await delay(50);
    }
    throw new Error(`${this.#process.spawnfile} does not get ready: ${this.#said}`);
  }

  /** Ends it, by default like a crash. */
  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (!this.isRunning) return;
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
}

/** Ports of this machine that are free as far as can be determined. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports: number[] = [];
  for (const server of servers) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ports.push((server.address() as { port: number }).port);
  }
  for (const server of servers) {
    server.close();
    await once(server, 'close');
  }
  return ports;
}

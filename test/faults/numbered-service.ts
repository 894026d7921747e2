import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { seed } from '../cases.js';
import { openArchive } from '../../engine/index.js';
import { makeSchema } from '../../engine/core/schema.js';
import { freePort, start, type Finished, type Running } from '../cli/process.js';
import { FollowingClient } from './following-client.js';
import { NumberedProgram } from './numbered-program.js';

/** The agent's file after the given number of changes, each of which adds a field. */
function agentFile(changes: number): string {
  const added = Array.from({ length: changes }, (_, i) => `  - name: added_${i}\n`).join('');
  return `fields:
  - name: time
    timestamp: { format: rfc3339 }
  - name: n
    type: int
${added}file:
  path: '../logs/app\\.log'
  format: json
`;
}

const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'n', type: 'int' },
]);

/** Longer than any step takes on a busy machine; only ends a hang. */
const patienceMs = 90_000;

/** The outcome of a run, over all written lines. */
export interface Outcome {
  readonly written: number;
  readonly lost: number;
  readonly repeated: number;
}

/** The real `logstrata serve` on its own folder, with a program whose log it follows and a client that reads on. */
export class NumberedService {
  readonly folder: string;
  readonly program: NumberedProgram;
  readonly client = new FollowingClient();
  process: Running | null = null;
  private url = '';
  private changes = 0;

  /** The records are in `dataFolder`, by default in the service's own folder. */
  constructor(private readonly dataFolder = 'data/store') {
    this.folder = mkdtempSync(join(tmpdir(), 'logstrata-faults-'));
    onTestFinished(() => rmSync(this.folder, { recursive: true, force: true }));
    mkdirSync(join(this.folder, 'agents'));
    this.changeFields();
    this.program = new NumberedProgram(join(this.folder, 'logs'));
  }

  /** Adds a field, because of which the next start seals the hot records. */
  changeFields(): void {
    writeFileSync(join(this.folder, 'agents/numbers.yaml'), agentFile(this.changes++));
  }

  /** Starts the service without waiting for it. */
  async begin(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}/api/query/numbers`;
    const args = ['serve', '--data', this.dataFolder, '--listen', `127.0.0.1:${port}`];
    this.process = start(this.folder, args, environment);
  }

  /** Starts the service, and waits until it answers. */
  async start(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.begin(environment);
    await this.process!.shows('serving ');
  }

  /** Whether it runs, as far as is known. */
  get isUp(): boolean {
    const child = this.process?.child;
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  async kill(): Promise<void> {
    this.process!.child.kill('SIGKILL');
    await this.process!.finished;
  }

  /** Tells it to stop. It may have ended already. */
  async stop(): Promise<Finished> {
    this.process!.child.kill('SIGTERM');
    return this.process!.finished;
  }

  poll(): Promise<void> {
    return this.client.poll(this.url);
  }

  /** Polls until the client has seen every line. Ends early, with false, if the service ends. */
  async catchUp(): Promise<boolean> {
    const deadlineMs = Date.now() + patienceMs;
    while (this.client.caughtUp < this.program.written) {
      if (!this.isUp) return false;
      if (Date.now() > deadlineMs) {
        const shown = (await this.stop()).stderr;
        throw new Error(
          `line ${this.client.caughtUp} of ${this.program.written} did not come:\n${shown.slice(-4000)}`,
        );
      }
      await this.poll();
      await delay(15);
    }
    return true;
  }

  /**
   * Counts the lines in the store that are missing or repeated. Fails unless the client has seen exactly the stored records under the same
   * cursors in the same order, and unless every checksum of the store is right.
   */
  async outcome(): Promise<Outcome> {
    await this.catchUp();
    const stored = await this.client.everything(this.url);
    const distinct = new Set(stored.map(({ n }) => n)).size;
    const { written } = this.program;
    const outcome = { written, lost: written - distinct, repeated: stored.length - distinct };
    // As two texts, because showing the difference of long lists takes minutes.
    const text = (cursors: readonly string[], numbers: readonly number[]): string =>
      cursors.map((cursor, i) => `${cursor} ${numbers[i]}`).join('\n');
    const { cursors, numbers } = this.client;
    const isSame =
      text(
        stored.map(({ cursor }) => cursor),
        stored.map(({ n }) => n),
      ) === text(cursors, numbers);
    expect({ isSame, seen: numbers.length }).toEqual({ isSame: true, seen: stored.length });
    await this.verify();
    return outcome;
  }

  private async verify(): Promise<void> {
    const archive = await openArchive(resolve(this.folder, this.dataFolder), {
      mode: 'read',
      role: 'verify',
    });
    try {
      const store = await archive.agent('numbers', schema);
      expect((await store.verify()).damages).toEqual([]);
    } finally {
      await archive.close();
    }
  }
}

/** Prints one line about a run. */
export function summarise(what: string, runs: number, { written, lost, repeated }: Outcome): void {
  process.stdout.write(
    `${what}: ${runs} runs, ${written} lines, ${lost} lost, ${repeated} repeated (seed ${seed})\n`,
  );
}

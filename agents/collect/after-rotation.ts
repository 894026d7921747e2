import { spawn } from 'node:child_process';
import { dirname } from 'node:path';
import type { CollectLog } from './logs/collect-log.js';

/** A hanging command is ended after this time, because it would keep the next one from running. */
const timeLimitMs = 60_000;

/** How much of a command's error output is kept for the message when it fails. */
const saidBytesMax = 2000;

/**
 * Runs the command `file.rotate.run` after rotations, by the shell in the folder of the agent's file, one at a time.
 * Rotations during a run cause one more run. A failure is logged; nothing else depends on the command.
 */
export class AfterRotation {
  private running: Promise<void> | undefined;
  private again = false;

  constructor(
    private readonly agent: string,
    private readonly agentPath: string,
    private readonly command: string,
    private readonly log: CollectLog,
  ) {}

  /** Runs the command; if it is running, runs it once more afterwards. */
  call(): void {
    if (this.running !== undefined) {
      this.again = true;
      return;
    }
    this.running = this.run().finally(() => {
      this.running = undefined;
      if (!this.again) return;
      this.again = false;
      this.call();
    });
  }

  /** Resolves when no command is running. */
  async idle(): Promise<void> {
    while (this.running !== undefined) await this.running;
  }

  private async run(): Promise<void> {
    const { agent, command, log } = this;
    const problem = await runCommand(command, dirname(this.agentPath));
    if (problem === null) log.info({ agent, command }, 'the command after a rotation was run');
    else log.error({ agent, command }, `the command after a rotation failed: ${problem}`);
  }
}

/** Runs a shell command. Returns what went wrong, or null. */
function runCommand(command: string, folder: string): Promise<string | null> {
  return new Promise((resolve) => {
    const stdio: ['ignore', 'ignore', 'pipe'] = ['ignore', 'ignore', 'pipe'];
    const child = spawn(command, { shell: true, cwd: folder, stdio, timeout: timeLimitMs });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-saidBytesMax);
    });
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => {
      if (code === 0) return resolve(null);
      const end = signal === null ? `exit code ${code}` : `ended by ${signal}`;
      resolve(said.trim() === '' ? end : `${end}: ${said.trim()}`);
    });
  });
}

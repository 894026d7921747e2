import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

/**
 * Runs a script of a benchmark, such as `collecting/paced-writer`, in a process of its own. The task is its argument; the last line of its
 * output is its result as JSON.
 */
export class Child<T> {
  private printed = '';
  private readonly child: ChildProcessByStdio<Writable, Readable, null>;
  private readonly ended: Promise<unknown[]>;

  /** @param script its path in `bench`, without an ending */
  constructor(script: string, task: object) {
    const path = join(import.meta.dirname, `${script}.js`);
    this.child = spawn(process.execPath, [path, JSON.stringify(task)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => (this.printed += text));
    this.ended = once(this.child, 'close');
  }

  /** Resolves once it has printed this text. */
  async prints(text: string): Promise<void> {
    while (!this.printed.includes(text)) {
      if (this.child.exitCode !== null) throw new Error(`it ended with ${this.child.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** Writes a text to its standard input and closes it. */
  tell(text: string): void {
    this.child.stdin.end(text);
  }

  /** The result of the script, once it has ended. Rejects where it failed. */
  async figures(): Promise<T> {
    const [code] = await this.ended;
    if (code !== 0) throw new Error(`it ended with ${String(code)}`);
    return JSON.parse(this.printed.trimEnd().split('\n').at(-1)!) as T;
  }

  /** Kills the process. */
  stop(): void {
    this.child.kill('SIGKILL');
  }
}

/** Runs a script of a benchmark, and returns its result. */
export function runChild<T>(script: string, task: object): Promise<T> {
  return new Child<T>(script, task).figures();
}

import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

/** A script of this folder in a process of its own, which gets its task as its argument and prints what it came to. */
export class Child<T> {
  private printed = '';
  private readonly child: ChildProcessByStdio<Writable, Readable, null>;
  private readonly ended: Promise<unknown[]>;

  constructor(script: string, task: object) {
    const path = join(import.meta.dirname, `${script}.js`);
    this.child = spawn(process.execPath, [path, JSON.stringify(task)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => (this.printed += text));
    this.ended = once(this.child, 'close');
  }

  /** Resolves once it has printed this. */
  async prints(text: string): Promise<void> {
    while (!this.printed.includes(text)) {
      if (this.child.exitCode !== null) throw new Error(`it ended with ${this.child.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** Says the last that there is to say. */
  tell(text: string): void {
    this.child.stdin.end(text);
  }

  /** The last line that it has printed, once it has ended. */
  async figures(): Promise<T> {
    const [code] = await this.ended;
    if (code !== 0) throw new Error(`it ended with ${String(code)}`);
    return JSON.parse(this.printed.trimEnd().split('\n').at(-1)!) as T;
  }

  stop(): void {
    this.child.kill('SIGKILL');
  }
}

/** Runs a script of this folder to its end. */
export function runChild<T>(script: string, task: object): Promise<T> {
  return new Child<T>(script, task).figures();
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { quoteLongIntegers } from '../answer-digest.js';
import type { Question, SetColumn } from '../question.js';
import { columnsOf } from '../record-set.js';
import type { Side, SideOptions } from '../side.js';
import { resolvePeer } from './peer-package.js';
import { asksPattern } from './sql.js';

/** Exit codes of ripgrep: something was found, nothing was found. Any other one is a failure. */
const foundOrNot = [0, 1];

/** ripgrep over the file of JSON Lines. It loads nothing, and can only search for a text. */
export class RipgrepSide implements Side {
  private readonly columns: readonly SetColumn[];

  constructor(private readonly options: SideOptions) {
    this.columns = columnsOf[options.set.name];
  }

  async version(): Promise<string> {
    const text = await this.run(['--version']);
    return text.split('\n')[0] ?? 'ripgrep';
  }

  load(): Promise<void> {
    return Promise.resolve();
  }

  bytesOnDisk(): Promise<number> {
    return Promise.resolve(this.options.set.bytes);
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  answers(question: Question): boolean {
    // Each run is a new process over the same file, so cold and unindexed questions would be no different.
    return question.needle === 'text' && question.isCold !== true && question.isUnindexed !== true;
  }

  async ask(question: Question, take?: (piece: Uint8Array | string) => void): Promise<void> {
    const threads = String(this.options.threads);
    const needle = String(question.filters[0]?.value ?? '');
    const args = [
      ...(asksPattern(question) ? [] : ['--fixed-strings', '--ignore-case']),
      '--threads',
      threads,
      '--',
      needle,
      this.options.set.path,
    ];
    const text = await this.run(args);
    if (take === undefined) return;
    for (const line of text.split('\n')) if (line !== '') take(`${this.asAnswer(line)}\n`);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Converts a line of the file to the names and types of an answer. */
  private asAnswer(line: string): string {
    const record = JSON.parse(quoteLongIntegers(line)) as Record<string, string | number | null>;
    const entries = this.columns.map(({ name, source, kind }) => {
      const value = record[source] ?? null;
      return [name, kind === 'time' && typeof value === 'string' ? Date.parse(value) : value] as const;
    });
    return JSON.stringify(Object.fromEntries(entries));
  }

  private async run(args: readonly string[]): Promise<string> {
    const binary = `@vscode/ripgrep-${process.platform}-${process.arch}`;
    // The package with the binary is a dependency of the installed package, and is resolved from there.
    const entry = resolvePeer('ripgrep', `${binary}/package.json`);
    const program = join(dirname(entry), 'bin', process.platform === 'win32' ? 'rg.exe' : 'rg');
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    const [code] = (await once(child, 'close')) as [number | null];
    if (code === null || !foundOrNot.includes(code)) throw new Error(`ripgrep ended with ${code}`);
    return text;
  }
}

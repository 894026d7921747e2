import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { gzipSync } from 'node:zlib';
import { lineOf, type FollowedFolder } from './followed-folder.js';

/** Changes of the logs, of the service, or of the clock. */
export type Step =
  | { readonly kind: 'write'; readonly name: string; readonly lines: number }
  | { readonly kind: 'partial'; readonly name: string }
  | { readonly kind: 'collect' }
  | { readonly kind: 'rename'; readonly name: string; readonly late: number }
  | { readonly kind: 'copy'; readonly name: string }
  | { readonly kind: 'gzip'; readonly name: string }
  | { readonly kind: 'recreate'; readonly name: string }
  | { readonly kind: 'leave'; readonly name: string }
  | { readonly kind: 'restart'; readonly crash: boolean }
  | { readonly kind: 'load'; readonly name: string }
  | { readonly kind: 'pass'; readonly seconds: number };

/** Writes and rotates logs as programs and logrotate do, and knows every line that it wrote. */
export class LogWriter {
  readonly written: number[] = [];
  /** Lines that were begun, by name. */
  private readonly begun = new Map<string, string>();
  private readonly away = new Set<string>();

  /** @param textOf the text of record `n`, without the end of its last line */
  constructor(
    private readonly followed: FollowedFolder,
    private readonly textOf: (n: number) => string = lineOf,
  ) {}

  async take(step: Step): Promise<void> {
    const { followed } = this;
    switch (step.kind) {
      case 'write':
        for (let i = 0; i < step.lines; i++) this.write(step.name);
        return;
      case 'partial':
        return this.begin(step.name);
      case 'collect':
        return followed.collect();
      case 'rename':
        return this.rename(step.name, step.late);
      case 'copy':
        return this.copyTruncate(step.name);
      case 'gzip':
        return this.gzip(step.name);
      case 'recreate':
        return this.recreate(step.name);
      case 'leave':
        return this.leaveOrReturn(step.name);
      case 'restart':
        await (step.crash ? followed.crash() : followed.stop());
        return followed.start();
      case 'load':
        // A load takes a line that is being written for a complete one.
        if (existsSync(this.log(step.name)) && !this.begun.has(step.name))
          await followed.load(`${step.name}.log`);
        return;
      case 'pass':
        return followed.pass(step.seconds * 1000);
    }
  }

  /** Ends every line that was begun, and lets the collector store the rest. */
  async finish(): Promise<void> {
    for (const name of [...this.away]) this.leaveOrReturn(name);
    for (const name of [...this.begun.keys()]) this.write(name);
    await this.followed.settle();
  }

  private log(name: string): string {
    return this.followed.path(`${name}.log`);
  }

  private nextLine(): string {
    const n = this.written.length + 1;
    this.written.push(n);
    return this.textOf(n);
  }

  /** Ends the line that was begun, or writes a whole one. */
  private write(name: string): void {
    if (this.away.has(name)) return;
    const line = this.begun.get(name) ?? this.nextLine();
    this.begun.delete(name);
    appendFileSync(this.log(name), `${line}\n`);
  }

  private begin(name: string): void {
    if (this.away.has(name) || this.begun.has(name)) return;
    const line = this.nextLine();
    // The cut is in the last line, because lines with their ends may count as a complete record after a while.
    const cut = line.lastIndexOf('\n') + 4;
    appendFileSync(this.log(name), line.slice(0, cut));
    this.begun.set(name, line.slice(cut));
  }

  /** Moves each generation up by one, and the log to the first place, where its program continues to write for a while. */
  private rename(name: string, late: number): void {
    if (this.away.has(name) || !existsSync(this.log(name))) return;
    const handle = openSync(this.log(name), 'a');
    this.shift(name);
    renameSync(this.log(name), `${this.log(name)}.1`);
    const rest = this.begun.get(name);
    if (rest !== undefined) writeSync(handle, `${rest}\n`);
    this.begun.delete(name);
    for (let i = 0; i < late; i++) writeSync(handle, `${this.nextLine()}\n`);
    closeSync(handle);
  }

  private shift(name: string): void {
    const places = [...Array(60).keys()].reverse();
    for (const k of places) {
      for (const ending of ['', '.gz']) {
        const from = `${this.log(name)}.${k}${ending}`;
        if (existsSync(from)) renameSync(from, `${this.log(name)}.${k + 1}${ending}`);
      }
    }
  }

  private copyTruncate(name: string): void {
    if (this.away.has(name) || this.begun.has(name) || !existsSync(this.log(name))) return;
    this.shift(name);
    copyFileSync(this.log(name), `${this.log(name)}.1`);
    truncateSync(this.log(name));
  }

  private gzip(name: string): void {
    const from = `${this.log(name)}.1`;
    if (!existsSync(from)) return;
    writeFileSync(`${from}.gz`, gzipSync(readFileSync(from)));
    unlinkSync(from);
  }

  /** Removes a stored log and starts another one, often with the same inode number. */
  private async recreate(name: string): Promise<void> {
    if (this.away.has(name) || this.begun.has(name) || !existsSync(this.log(name))) return;
    await this.followed.collectAll();
    unlinkSync(this.log(name));
    writeFileSync(this.log(name), '');
  }

  private leaveOrReturn(name: string): void {
    const elsewhere = this.followed.path(`${name}.away`);
    if (this.away.delete(name)) {
      renameSync(elsewhere, this.log(name));
    } else if (existsSync(this.log(name)) && !this.begun.has(name)) {
      renameSync(this.log(name), elsewhere);
      this.away.add(name);
    }
  }
}

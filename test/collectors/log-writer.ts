import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import { zstd } from '../agents/load/compressed.js';
import { Container } from './container.js';
import { lineOf, type FollowedFolder } from './followed-folder.js';

/** Changes of the logs, of the service, or of the clock. */
export type Step =
  | { readonly kind: 'write'; readonly name: string; readonly lines: number }
  | { readonly kind: 'partial'; readonly name: string }
  | { readonly kind: 'collect' }
  | { readonly kind: 'rename'; readonly name: string; readonly late: number }
  | { readonly kind: 'copy'; readonly name: string }
  | { readonly kind: 'gzip'; readonly name: string }
  | {
      readonly kind: 'pack';
      readonly name: string;
      readonly by: Packer;
      readonly late: number;
      readonly seen: boolean;
    }
  | { readonly kind: 'repack'; readonly name: string; readonly by: Packer; readonly over: boolean }
  | { readonly kind: 'replace'; readonly name: string; readonly added: number }
  | { readonly kind: 'trim'; readonly name: string; readonly added: number; readonly inPlace: boolean }
  | {
      readonly kind: 'rotateTarget';
      readonly times: number;
      readonly packed: boolean;
      readonly isDown: boolean;
    }
  | { readonly kind: 'recreate'; readonly name: string }
  | { readonly kind: 'leave'; readonly name: string }
  | { readonly kind: 'restart'; readonly crash: boolean }
  | { readonly kind: 'load'; readonly name: string }
  | { readonly kind: 'pass'; readonly seconds: number };

/** What makes the copy of a rotated log that takes its place. */
export type Packer = 'gzip' | 'zstd' | 'copy';

const packed = (by: Packer, content: Buffer, level: number): Buffer =>
  by === 'gzip' ? gzipSync(content, { level }) : by === 'zstd' ? zstd(content) : content;

const endings = { gzip: '.gz', zstd: '.zst', copy: '' };

/** Writes and rotates logs as programs and logrotate do, and knows every line that it wrote. */
export class LogWriter {
  readonly written: number[] = [];
  /** Lines that were begun, by name. */
  private readonly begun = new Map<string, string>();
  private readonly away = new Set<string>();
  /** Names whose generation `.1` has a program that may still write to it: it is no copy. */
  private readonly renamed = new Set<string>();
  private container: Container | undefined;

  /**
   * @param textOf the text of record `n`, without the end of its last line
   * @param banner what each log begins with
   */
  constructor(
    private readonly followed: FollowedFolder,
    private readonly textOf: (n: number) => string = lineOf,
    private readonly banner = '',
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
      case 'pack':
        return this.pack(step);
      case 'repack':
        return this.repack(step);
      case 'replace':
        return this.replace(step.name, step.added);
      case 'trim':
        return this.trim(step);
      case 'rotateTarget':
        return this.rotateTarget(step);
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
    this.append(name, `${line}\n`);
  }

  private append(name: string, text: string): void {
    const isNew = !existsSync(this.log(name)) || statSync(this.log(name)).size === 0;
    appendFileSync(this.log(name), isNew ? `${this.banner}${text}` : text);
  }

  private newLines(count: number): string {
    return Array.from({ length: count }, () => `${this.nextLine()}\n`).join('');
  }

  private begin(name: string): void {
    if (this.away.has(name) || this.begun.has(name)) return;
    const line = this.nextLine();
    // The cut is in the last line, because lines with their ends may count as a complete record after a while.
    const cut = line.lastIndexOf('\n') + 4;
    this.append(name, line.slice(0, cut));
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
    writeSync(handle, this.newLines(late));
    closeSync(handle);
    this.renamed.add(name);
  }

  private shift(name: string): void {
    const places = [...Array(60).keys()].reverse();
    for (const k of places) {
      for (const ending of Object.values(endings)) {
        const from = `${this.log(name)}.${k}${ending}`;
        if (existsSync(from)) renameSync(from, `${this.log(name)}.${k + 1}${ending}`);
      }
    }
  }

  private copyTruncate(name: string): void {
    if (this.away.has(name) || this.begun.has(name) || !existsSync(this.log(name))) return;
    this.shift(name);
    this.renamed.delete(name);
    copyFileSync(this.log(name), `${this.log(name)}.1`);
    truncateSync(this.log(name));
  }

  private gzip(name: string): void {
    const from = `${this.log(name)}.1`;
    if (!existsSync(from)) return;
    writeFileSync(`${from}.gz`, gzipSync(readFileSync(from)));
    unlinkSync(from);
    this.renamed.delete(name);
  }

  /** Makes a copy in the place of the last generation, while its program still writes lines that the copy lacks. */
  private async pack({ name, by, late, seen }: Extract<Step, { kind: 'pack' }>): Promise<void> {
    if (!existsSync(`${this.log(name)}.1`)) return;
    if (by === 'copy') this.shift(name);
    const from = `${this.log(name)}.${by === 'copy' ? 2 : 1}`;
    // From here on the server has it open, and can read what is written before it is removed.
    await this.followed.collect();
    const isOpen = [...this.followed.collector.files].some(
      ({ path, kind }) => path === from && kind === 'follow',
    );
    const copy = packed(by, readFileSync(from), 6);
    if (this.renamed.delete(name) && isOpen) appendFileSync(from, this.newLines(late));
    if (seen) await this.followed.collect();
    writeFileSync(`${this.log(name)}.1${endings[by]}`, copy);
    if (!seen) await this.followed.collect();
    unlinkSync(from);
    await this.followed.collectAll();
  }

  /** Compresses the newest compressed generation anew. */
  private async repack({ name, by, over }: Extract<Step, { kind: 'repack' }>): Promise<void> {
    const generations = [...Array(60).keys()].map((k) => `${this.log(name)}.${k}`);
    const path = generations.find((each) => existsSync(`${each}.gz`));
    if (path === undefined || existsSync(`${path}${endings[by]}`) !== (by === 'gzip')) return;
    const content = readFileSync(`${path}.gz`);
    // It may have been packed by another one before.
    if (content[0] !== 0x1f) return;
    const anew = packed(by, gunzipSync(content), 1);
    writeFileSync(over ? `${path}.gz` : `${path}.next`, anew);
    if (over) return;
    const to = `${path}${endings[by]}`;
    renameSync(`${path}.next`, to);
    await this.followed.collect();
    if (to !== `${path}.gz`) unlinkSync(`${path}.gz`);
  }

  /** Puts a longer copy in the place of a log. */
  private async replace(name: string, added: number): Promise<void> {
    if (this.away.has(name) || this.begun.has(name) || !existsSync(this.log(name))) return;
    const content = readFileSync(this.log(name), 'utf8');
    const isShort = content.length < 1100;
    // Of a short log that was gone, nobody can tell its copy from a new log that begins alike, unless its return was seen.
    if (isShort && this.isMissed(name)) await this.followed.collect();
    this.put(name, `${content}${this.newLines(added)}`);
    // The copy must be seen in the place of the log: elsewhere, it could also be a new log.
    if (isShort) await this.followed.collectAll();
  }

  /** Whether the server has seen that no file has the name of the log, and has not looked since. */
  private isMissed(name: string): boolean {
    const seen = [...this.followed.collector.files].filter(({ path }) => path === this.log(name));
    return seen.length > 0 && seen.every(({ isGone }) => isGone);
  }

  private put(name: string, content: string): void {
    const next = this.followed.path(`${name}.next`);
    writeFileSync(next, content);
    renameSync(next, this.log(name));
  }

  /** Removes the beginning of a stored log of which enough is left to find the last stored line in it. */
  private async trim({ name, added, inPlace }: Extract<Step, { kind: 'trim' }>): Promise<void> {
    if (this.away.has(name) || this.begun.has(name) || !existsSync(this.log(name))) return;
    await this.followed.collectAll();
    const content = readFileSync(this.log(name), 'utf8');
    const kept = content.slice(content.indexOf('\n2026-', content.length - 2500) + 1);
    if (content.length < 4000 || !kept.startsWith('2026-')) return;
    const trimmed = `${kept}${this.newLines(added + 1)}`;
    if (inPlace) writeFileSync(this.log(name), trimmed);
    else this.put(name, trimmed);
    await this.followed.collectAll();
  }

  /** Rotates the log that the link `web.log` leads to beside itself. */
  private async rotateTarget({
    times,
    packed,
    isDown,
  }: Extract<Step, { kind: 'rotateTarget' }>): Promise<void> {
    if (this.away.has('web') || this.begun.has('web')) return;
    if (this.container === undefined) {
      if (existsSync(this.log('web'))) return;
      this.container = new Container(this.followed);
      this.container.link();
    }
    await this.followed.collect();
    if (isDown) await this.followed.stop();
    for (let i = 0; i < (isDown ? times : 1); i++) {
      appendFileSync(this.container.log, this.newLines(i + 1));
      if (!isDown) await this.followed.collect();
      const path = this.container.rotate();
      if (packed) this.container.compress(path);
    }
    if (isDown) await this.followed.start();
    await this.followed.collect();
  }

  /** Removes a stored log and starts another one, often with the same inode number. */
  private async recreate(name: string): Promise<void> {
    if (this.away.has(name) || this.begun.has(name) || !existsSync(this.log(name))) return;
    await this.followed.collectAll();
    unlinkSync(this.log(name));
    writeFileSync(this.log(name), this.banner);
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

import { closeSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { isatty } from 'node:tty';
import type { SingleBar } from 'cli-progress';
import {
  answeredValue,
  fileSystemError,
  hasSystemCode,
  type AttachedStats,
  type FieldType,
} from '../../engine/index.js';

/** The ANSI codes (SGR) of the colours that records are shown in. How they look depends on the terminal. */
const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;

export type Colour = keyof typeof codes;

/** Colours a text, or returns it unchanged where colours are off. */
export type Paint = (text: string, colour: Colour) => string;

/** When records are shown in colours. */
export const colourChoices = ['auto', 'always', 'never'] as const;

export type ColourChoice = (typeof colourChoices)[number];

/**
 * Whether to use colours. The option wins, then `FORCE_COLOR`, then `NO_COLOR` (https://no-color.org: any value but the empty one). Without
 * these, colours are used on a terminal that has them.
 */
export function hasColours(
  choice: ColourChoice,
  isTerminal: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  if (choice !== 'auto') return choice === 'always';
  const { FORCE_COLOR: forced = '', NO_COLOR: refused = '', TERM: terminal } = environment;
  if (forced !== '') return forced !== '0' && forced !== 'false';
  return refused === '' && isTerminal && terminal !== 'dumb';
}

/** Leaves a text as it is. */
export const plain: Paint = (text) => text;

/** Colours a text with ANSI codes. */
export const coloured: Paint = (text, colour) =>
  text === '' ? '' : `\u001b[${codes[colour]}m${text}\u001b[0m`;

// Shared: making one costs more than a thousand uses, and each update of progress formats several numbers.
const countFormat = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const numberFormat = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 6 });

/** A whole number with separators: `1,234,567`. */
export function formatCount(count: number | bigint): string {
  return countFormat.format(count);
}

/** A number with at most six digits that differ from 0: `1,234.57`. */
export function formatNumber(value: number): string {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-4 || size >= 1e15)
    ? String(Number(value.toPrecision(6)))
    : numberFormat.format(value);
}

/** A count with its noun: `1 record`, `2,000 records`. */
export function formatCounted(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}

/** A size in decimal units: `999 bytes`, `1.5 kB`, `230 MB`. */
export function formatBytes(bytes: number): string {
  const units = ['kB', 'MB', 'GB', 'TB', 'PB'];
  if (bytes < 1000) return formatCounted(bytes, 'byte');
  let value = bytes;
  let unit = -1;
  // Values that would be rounded to 1000 are shown in the next larger unit.
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 99.95 ? value.toFixed(1) : value.toFixed(0)} ${units[unit]}`;
}

/** A duration: `12 ms`, `3.4 s`, `2 min 05 s`, `1 h 02 min`. */
export function formatSpan(ms: number): string {
  if (ms < 999.5) return `${ms < 9.95 ? Number(ms.toFixed(1)) : Math.round(ms)} ms`;
  const seconds = Math.round(ms / 1000);
  if (ms < 99_950) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${String(seconds % 60).padStart(2, '0')} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

/**
 * A time as `YYYY-MM-DD HH:MM:SS` in UTC, which filters accept; `-` for null. Years outside 0 to 9999 have a sign and six digits. A time
 * outside the range of `Date` is shown in milliseconds.
 */
export function formatTime(timeMs: number | null): string {
  if (timeMs === null) return '-';
  const date = new Date(timeMs);
  return Number.isNaN(date.getTime())
    ? String(timeMs)
    : date.toISOString().slice(0, -'.000Z'.length).replace('T', ' ');
}

/** Records per second; `-` for a duration that is too short. */
export function formatRate(records: number, ms: number): string {
  return ms < 1 ? '-' : `${formatCounted(Math.round((records * 1000) / ms), 'record')}/s`;
}

const hourMs = 3_600_000;

/** A long period as days and hours: `2 d 3 h 00 min`. Shorter than a day it is a duration (`formatSpan`). */
export function formatPeriod(ms: number): string {
  const days = Math.floor(ms / (24 * hourMs));
  const rest = ms % (24 * hourMs);
  if (days === 0) return formatSpan(ms);
  return rest === 0 ? `${days} d` : `${days} d ${formatSpan(rest)}`;
}

/** Characters that take two columns in terminals: those of East Asian scripts, and emoji. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Characters that take no column: combining marks and invisible format characters. */
const narrow = /\p{Mn}|\p{Me}|\p{Cf}/u;
/** Characters that would move the cursor, change colours or end the line. */
const controls = /\p{Cc}|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** A text in a form that is safe to show on one line: control characters are escaped. */
export function printable(text: string): string {
  return text.replace(controls, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Like `printable`, for a text whose line ends are its own. */
export function printableLines(text: string): string {
  return text.replaceAll(/[^\r\n]+/g, printable);
}

/** A text on one line, with line breaks as `⏎`, tabs as blanks and other control characters escaped. */
export function oneLine(text: string): string {
  return printable(text.replaceAll(/\r?\n/g, '⏎').replaceAll('\t', ' '));
}

/** Columns of a terminal that a text takes. Approximate, as terminals differ for some characters. */
export function textWidth(text: string): number {
  let width = 0;
  for (const character of text) width += widthOf(character);
  return width;
}

function widthOf(character: string): number {
  if (character < '\u0300') return 1;
  if (narrow.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** Cuts a text to at most `most` columns, with an ellipsis in the middle: long texts often have the same beginning and differ at the end. */
export function cutToWidth(text: string, most: number): string {
  if (textWidth(text) <= most) return text;
  const characters = [...text];
  const head = takeWidth(characters, Math.ceil((most - 1) / 2));
  const tail = takeWidth(characters.reverse(), Math.floor((most - 1) / 2));
  return `${head.join('')}…${tail.reverse().join('')}`;
}

/** Cuts a text to at most `most` columns, with an ellipsis at the end. */
export function cutEndToWidth(text: string, most: number): string {
  return textWidth(text) <= most ? text : `${takeWidth([...text], most - 1).join('')}…`;
}

/** Wraps a text into lines of at most `most` columns. A line is broken at a blank unless that would leave it less than half full. */
export function wrapToWidth(text: string, most: number): string[] {
  const lines: string[] = [];
  let line = '';
  let width = 0;
  // Index of the last blank in the line, and the columns up to and including that blank.
  let blank = -1;
  let blankWidth = 0;
  for (const character of text) {
    const columns = widthOf(character);
    if (width + columns > most && line !== '') {
      const isAtBlank = character !== ' ' && blankWidth * 2 > most;
      lines.push((isAtBlank ? line.slice(0, blank) : line).trimEnd());
      line = isAtBlank ? line.slice(blank + 1) : '';
      width = isAtBlank ? width - blankWidth : 0;
      blank = -1;
      blankWidth = 0;
      if (line === '' && character === ' ') continue;
    }
    if (character === ' ') {
      blank = line.length;
      blankWidth = width + 1;
    }
    line += character;
    width += columns;
  }
  return [...lines, line];
}

/** The first characters that together take at most `most` columns. */
function takeWidth(characters: readonly string[], most: number): string[] {
  const taken: string[] = [];
  let width = 0;
  for (const character of characters) {
    width += widthOf(character);
    if (width > most) break;
    taken.push(character);
  }
  return taken;
}

/** Pads a text with blanks at the end to `width` columns. */
export function padEndToWidth(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)));
}

/** Pads a text with blanks at the beginning to `width` columns. */
export function padStartToWidth(text: string, width: number): string {
  return ' '.repeat(Math.max(0, width - textWidth(text))) + text;
}

const screenWidthDefault = 80;

/** Standard output was closed by its reader (`| head`) or with its terminal. The rest of the output is not needed, so this is not a failure. */
export class OutputClosedError extends Error {
  constructor() {
    super('standard output was closed');
    this.name = 'OutputClosedError';
  }
}

/**
 * Writes to standard output and waits until the system has accepted the data (back-pressure of a slow reader). Throws `OutputClosedError`
 * where the reader has closed its end.
 */
export function writeOut(piece: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(piece, (error) => {
      if (error === undefined || error === null) resolve();
      else if (hasSystemCode(error, 'EPIPE') || isTerminalGone(error)) reject(new OutputClosedError());
      else reject(fileSystemError(error, 'write', 'standard output') as Error);
    });
  });
}

/**
 * Writes whole lines that contain texts of logs. On a terminal control characters are escaped as `\u001b`, which keeps JSON equivalent.
 * Otherwise the bytes are written unchanged.
 */
export function writeRecords(piece: Uint8Array): Promise<void> {
  if (!process.stdout.isTTY) return writeOut(piece);
  const text = Buffer.from(piece.buffer, piece.byteOffset, piece.length).toString('utf8');
  return writeOut(printableLines(text));
}

/** Columns of the terminal that standard output is connected to; null where it is not a terminal. */
export function screenWidth(): number | null {
  // `columns` is 0 or undefined for a terminal that does not know its size.
  return process.stdout.isTTY ? process.stdout.columns || screenWidthDefault : null;
}

/** Whether a write failed because the terminal was closed. */
function isTerminalGone(error: unknown): boolean {
  return process.stdout.isTTY && hasSystemCode(error, 'EIO');
}

/**
 * Writes the output of a command as lines. Control characters are escaped: lines contain names of files, fields and the like, which
 * somebody else may have chosen.
 */
export async function printLines(lines: readonly string[]): Promise<void> {
  if (lines.length > 0) await writeOut(`${lines.map(printable).join('\n')}\n`);
}

/** Writes the output of a command as one line of JSON. 64-bit integers become strings with all digits. */
export async function printJson(value: unknown): Promise<void> {
  const text = JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'bigint' ? part.toString() : part,
  );
  await writeOut(`${printable(text)}\n`);
}

/**
 * Writes a message to people on standard error, so that standard output has only the output of the command. Control characters are
 * escaped as by `printLines`.
 */
export function tell(line: string): void {
  process.stderr.write(`${printable(line)}\n`);
}

/**
 * Handles errors of the standard streams. Must be called once at the start: without a listener a closed pipe would end the process with a
 * stack trace.
 */
export function handleClosedOutput(): void {
  // A failed write is reported by the callback in `writeOut`.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
  const terminals = [0, 1, 2].filter((handle) => isatty(handle));
  process.on('exit', () => leaveTerminals(terminals));
}

/** Closes the terminals that are gone. On exit Node restores the settings of terminals, and aborts where one was closed meanwhile. */
function leaveTerminals(handles: readonly number[]): void {
  for (const handle of handles) if (!isatty(handle)) closeSync(handle);
}

/** Milliseconds between two lines where standard error is not a terminal: frequent enough to show that work goes on, rare enough for a log file. */
const linesEveryMs = 5000;

/** Shows progress while `work` runs. */
export async function withProgress<T>(label: string, work: (progress: Progress) => Promise<T>): Promise<T> {
  const progress = new Progress(label);
  try {
    return await work(progress);
  } finally {
    progress.stop();
  }
}

const barWidth = 24;

/** Columns of a label that are always shown, even if the line becomes too long. */
const labelWidthMin = 12;

/** A line of progress of at most `width` columns. A long label is cut in the middle, so that the bar and the figures stay visible. */
export function drawBar(label: string, fraction: number | null, detail: string, width: number): string {
  const done = Math.floor(Math.min(1, Math.max(0, fraction ?? 0)) * barWidth);
  const percent = String(Math.floor((fraction ?? 0) * 100)).padStart(3);
  const rest =
    fraction === null
      ? `: ${detail}`
      : ` ${'█'.repeat(done)}${'░'.repeat(barWidth - done)} ${percent} % ${detail}`;
  return cutToWidth(printable(label), Math.max(labelWidthMin, width - textWidth(rest))) + rest;
}

/**
 * Shows the progress of a long piece of work on standard error: a bar on a terminal, else plain lines, which do not appear for work that
 * takes only seconds.
 */
export class Progress {
  #fraction: number | null = 0;
  #detail = '';
  #bar: SingleBar | undefined;
  #isOver = false;
  #toldMs = Date.now();

  constructor(private readonly label: string) {
    if (process.stderr.isTTY) void this.#begin();
  }

  /** Loads the library, which only a terminal needs. The work does not wait for it. */
  async #begin(): Promise<void> {
    const { SingleBar } = await import('cli-progress');
    if (this.#isOver) return;
    this.#bar = new SingleBar({
      format: () => drawBar(this.label, this.#fraction, this.#detail, process.stderr.columns || 80),
      fps: 8,
      stream: process.stderr,
      clearOnComplete: true,
      // The command handles signals itself, as it has files to clean up.
      gracefulExit: false,
    });
    this.#bar.start(1, 0);
  }

  /** `fraction` is from 0 to 1, or null where the total is not known. `detail` gives figures. */
  update(fraction: number | null, detail: string): void {
    this.#fraction = fraction;
    this.#detail = detail;
    if (process.stderr.isTTY) return this.#bar?.update({});
    const nowMs = Date.now();
    if (nowMs - this.#toldMs < linesEveryMs) return;
    this.#toldMs = nowMs;
    const percent = fraction === null ? [] : [`${Math.floor(fraction * 100)} %`];
    tell(`${this.label}: ${[...percent, ...(detail === '' ? [] : [detail])].join(', ')}`);
  }

  /** Shows how much is done, without figures. */
  readonly onFraction = (fraction: number): void => this.update(fraction, '');

  /** Shows how many of the files are done. */
  readonly onFiles = (done: number, files: number): void =>
    this.update(done / files, `${formatCount(done)} of ${formatCounted(files, 'file')}`);

  /** Removes the bar from the screen, so that other lines can follow. May be called twice. */
  stop(): void {
    this.#isOver = true;
    this.#bar?.stop();
  }
}

/** Whether the program runs in a terminal where a person can answer questions. */
export function canAsk(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Asks a yes-or-no question on standard error. Any answer but yes counts as no. */
export async function askYesNo(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${printable(question)} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}

/** Says how many attached files have their rows ordered by time, and how many row groups must be sorted when they are read. */
export function describeRowOrder({ files, order }: Pick<AttachedStats, 'files' | 'order'>): string {
  const { filesUnordered, rowGroups, rowGroupsUnordered, runs } = order;
  const ordered = `${formatCount(files - filesUnordered)} of ${formatCounted(files, 'file')}`;
  const sorted =
    rowGroupsUnordered === 0
      ? ''
      : `, ${formatCount(rowGroupsUnordered)} of ${formatCounted(rowGroups, 'row group')} sorted as they are read`;
  return `${ordered}${sorted}; ${formatCounted(runs, 'run')} of rows`;
}

/** Minimum width of the last column, even on a narrower terminal. */
const lastWidthMin = 16;

/**
 * A table as lines of text: columns are padded to their widest cell and separated by two blanks; the header is underlined. The columns in
 * `numeric` (indexes) are aligned to the right. Where `width` is given, long cells of the last column are wrapped.
 */
export function formatTable(
  header: readonly string[],
  given: readonly (readonly string[])[],
  numeric: readonly number[] = [],
  width: number | null = null,
): string[] {
  const rows = given.map((row) => row.map(printable));
  const widths = header.map((cell, i) => Math.max(textWidth(cell), ...rows.map((row) => textWidth(row[i]!))));
  const last = header.length - 1;
  const before = widths.slice(0, last).reduce((sum, each) => sum + each + 2, 0);
  if (width !== null) widths[last] = Math.min(widths[last]!, Math.max(lastWidthMin, width - before));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) =>
        numeric.includes(i) ? padStartToWidth(cell, widths[i]!) : padEndToWidth(cell, widths[i]!),
      )
      .join('  ')
      .trimEnd();
  const lines = (row: readonly string[]): string[] => {
    if (width === null) return [line(row)];
    const [first = '', ...rest] = wrapToWidth(row[last]!, widths[last]!);
    return [line([...row.slice(0, last), first]), ...rest.map((part) => `${' '.repeat(before)}${part}`)];
  };
  return [line(header), widths.map((each) => '-'.repeat(each)).join('  '), ...rows.flatMap(lines)];
}

/** A name and a value. One without a value is not shown. */
export type Pair = readonly [name: string, value: string | false | null | undefined];

/** Lines of names and values, with the values aligned. */
export function formatPairs(pairs: readonly Pair[]): string[] {
  const shown = pairs.filter(([, value]) => typeof value === 'string') as [string, string][];
  const width = Math.max(0, ...shown.map(([name]) => textWidth(name)));
  return shown.map(([name, value]) => `${padEndToWidth(name, width)}  ${value}`.trimEnd());
}

/** The lines of an output, in which a condition can stand before a line or several: false and undefined are left out. */
export function linesOf(...parts: readonly (string | readonly string[] | false | undefined)[]): string[] {
  return parts.flatMap((part) => (part === false || part === undefined ? [] : part));
}

/** A stored value for people: bool as a word, a time also as a date, a string as JSON with control characters escaped. */
export function showValue(type: FieldType, value: bigint | number | string | boolean | null): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return printable(JSON.stringify(value));
  return type === 'time' ? `${value} (${formatTime(Number(value))} UTC)` : String(answeredValue(type, value));
}

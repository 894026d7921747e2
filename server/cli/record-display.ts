import { wallClock } from '../http/time-step.js';
import {
  roleOf,
  severityOf,
  usualColumns,
  type ColumnRole,
  type Field,
  type FieldType,
  type Severity,
} from '../viewer/state/field.js';
import { readRecordLine, valueText, type LogRecord, type Value } from '../viewer/state/record.js';
import {
  cutEndToWidth,
  cutToWidth,
  oneLine,
  padEndToWidth,
  padStartToWidth,
  printable,
  textWidth,
  wrapToWidth,
  type Colour,
  type Paint,
} from './terminal.js';

/** UTF-16 code units of a text that are examined per column of the screen. More would hardly matter, as few characters take no column. */
const unitsOfColumn = 8;

/** A value as text of one or several lines. Times are shown as local time of the zone, in the form that filters accept without an offset. */
function cellText(type: FieldType, value: Value | undefined, zone: string): string {
  return type === 'time' && typeof value === 'number' ? timeText(value, zone) : valueText(value);
}

function timeText(timeMs: number, zone: string): string {
  const clock = wallClock(timeMs, zone);
  const ms = ((timeMs % 1000) + 1000) % 1000;
  if (clock === null) return String(timeMs);
  return ms === 0 ? clock : `${clock}.${String(ms).padStart(3, '0')}`;
}

/** A text as lines, with control characters escaped. */
function manyLines(text: string): string[] {
  return text.split(/\r?\n/).map((line) => printable(line.replaceAll('\t', '    ')));
}

/**
 * Fits a text into one line of `width` columns. A message (role `text`) is cut at its end, as its beginning says most; other texts are cut
 * in the middle, as they often differ only at their ends.
 */
function fittedText(text: string, width: number, role: ColumnRole): string {
  const most = width * unitsOfColumn;
  if (role === 'text') {
    const head = oneLine(text.length > most ? text.slice(0, most) : text);
    return cutEndToWidth(text.length > most ? `${head}…` : head, width);
  }
  if (text.length <= 2 * most) return cutToWidth(oneLine(text), width);
  return cutToWidth(oneLine(`${text.slice(0, most)}…${text.slice(-most)}`), width);
}

const severityColours: Readonly<Record<Severity, Colour | null>> = {
  error: 'red',
  warn: 'yellow',
  info: 'cyan',
  ok: 'green',
  debug: 'dim',
  other: null,
};

/** The colour of a cell; null for the terminal's default. */
function cellColour(role: ColumnRole, value: Value | undefined): Colour | null {
  if (role === 'severity') return severityColours[severityOf(value)];
  return role === 'time' ? 'dim' : null;
}

/** Blanks between two columns. */
const gap = 2;
/** Minimum width of a column of long texts and of others. A field is left out rather than cut further. */
const textWidthMin = 30;
const otherWidthMin = 12;
/** Minimum width of fields that the user chose: these are rather cut than left out. */
const chosenWidthMin = 6;
/**
 * Maximum width of a column where the output is not a terminal. A longer cell exceeds its column, so that one long value does not widen all
 * lines.
 */
const widthMaxElsewhere = 120;

/** A column of the output. */
interface LaidColumn {
  /** Index of the field. */
  readonly field: number;
  readonly role: ColumnRole;
  readonly width: number;
}

/** The result of a layout. */
interface Layout {
  readonly columns: readonly LaidColumn[];
  /** Indexes of the fields that have no column. */
  readonly hidden: readonly number[];
}

/** The fields to lay out, and the width that is available. */
export interface Wanted {
  readonly fields: readonly Field[];
  /** Whether the fields were chosen by the user, in this order. */
  readonly isChosen: boolean;
  /** Width of the terminal in columns; null where nothing is to be cut. */
  readonly screenWidth: number | null;
}

/** For each field, the widest cell so far, in columns of the screen; 0 where no record has had a value. */
type NaturalWidths = number[];

/** Updates the widths with the cells of another record. */
function widen(widths: NaturalWidths, cells: readonly string[], screenWidth: number | null): void {
  const most = screenWidth ?? widthMaxElsewhere;
  cells.forEach((cell, i) => {
    const width = widths[i]!;
    if (width < most)
      widths[i] = Math.max(width, Math.min(most, textWidth(oneLine(cell.slice(0, 2 * most)))));
  });
}

/**
 * Chooses columns and their widths. Where the fields do not all fit, the time, severity, source and text come first (`usualColumns`, as in
 * the viewer), then others that fit without cutting a cell.
 */
function layOut(
  { fields, isChosen, screenWidth }: Wanted,
  titles: readonly string[],
  widths: NaturalWidths,
): Layout {
  const natural = fields.map((_, i) => Math.max(textWidth(titles[i]!), widths[i]!));
  const roles = fields.map((field) => roleOf(field, fields));
  const all = fields.map((_, i) => i);
  const laid = (taken: readonly number[], fitted: readonly number[]): Layout => ({
    columns: taken.map((field) => ({ field, role: roles[field]!, width: fitted[field]! })),
    hidden: all.filter((i) => !taken.includes(i)),
  });
  if (screenWidth === null || total(all, natural) <= screenWidth) return laid(all, natural);
  const least = all.map((i) => Math.min(natural[i]!, leastWidth(fields[i]!, roles[i]!, isChosen)));
  const usual = isChosen ? all : usualColumns(fields).map((name) => fields.findIndex((f) => f.name === name));
  const taken: number[] = [];
  // Fields without a value so far come last.
  for (const i of [...usual].sort((a, b) => Number(widths[a] === 0) - Number(widths[b] === 0)))
    if (total([...taken, i], least) <= screenWidth || taken.length === 0) taken.push(i);
  for (const i of all)
    if (!taken.includes(i) && widths[i]! > 0 && total([...taken, i], natural) <= screenWidth) taken.push(i);
  taken.sort((a, b) => a - b);
  return laid(taken, shrink(taken, natural, least, screenWidth));
}

function leastWidth({ type }: Field, role: ColumnRole, isChosen: boolean): number {
  if (type !== 'string' || role === 'severity') return Infinity;
  if (isChosen) return chosenWidthMin;
  return role === 'text' ? textWidthMin : otherWidthMin;
}

/** The width of these fields next to each other, with the gaps. */
function total(taken: readonly number[], widths: readonly number[]): number {
  return taken.reduce((sum, i) => sum + gap + widths[i]!, -gap);
}

/** Narrows the widest column repeatedly by 1 until all fit, but none below its minimum. */
function shrink(
  taken: readonly number[],
  natural: readonly number[],
  least: readonly number[],
  screenWidth: number,
): number[] {
  const widths = [...natural];
  for (let excess = total(taken, widths) - screenWidth; excess > 0; excess--) {
    let widest: number | undefined;
    for (const i of taken)
      if (widths[i]! > least[i]! && (widest === undefined || widths[i]! > widths[widest]!)) widest = i;
    if (widest === undefined) break;
    widths[widest]!--;
  }
  return widths;
}

/** Indent in columns of the lines that show fields without a column. */
const indent = 2;
/** Minimum width in columns: a narrower terminal is treated as this wide. */
const screenWidthMin = 20;

/** How records are shown. */
export interface RecordView {
  readonly fields: readonly Field[];
  /** Whether the fields were chosen by the user, in this order. */
  readonly isChosen: boolean;
  readonly zone: string;
  /** Whether records are shown in full, on as many lines as they need, instead of being cut. */
  readonly wraps: boolean;
  readonly paint: Paint;
  /** Current width of the terminal in columns; null where the output is not a terminal, and nothing is cut. */
  readonly screenWidth: () => number | null;
}

/**
 * Formats records as aligned lines for people. Columns are as wide as the first records need, and become wider for later ones, so that only
 * one piece of an answer has to be in memory. Texts of records are escaped, so that a terminal can't interpret them.
 */
export class RecordDisplay {
  readonly #titles: readonly string[];
  readonly #widths: NaturalWidths;
  #layout: Layout | null = null;
  /** Number of records so far, and the cursors of the first and the last one. */
  count = 0;
  first: string | null = null;
  last: string | null = null;

  constructor(private readonly view: RecordView) {
    this.#titles = view.fields.map(({ name, type }) =>
      printable(type === 'time' ? `${name} (${view.zone})` : name),
    );
    this.#widths = view.fields.map(() => 0);
  }

  /** Number of fields that have no column. */
  get hidden(): number {
    return this.view.wraps ? 0 : (this.#layout?.hidden.length ?? 0);
  }

  /** Formats records given as whole JSON Lines. Returns the text to print. */
  show(lines: string): string {
    const records = lines
      .split('\n')
      .filter((line) => line !== '')
      .map(readRecordLine);
    if (records.length === 0) return '';
    this.count += records.length;
    this.first ??= records[0]!.cursor;
    this.last = records.at(-1)!.cursor;
    const { fields, zone, wraps, isChosen } = this.view;
    const width = this.#screenWidth();
    const rows = records.map(({ values }) =>
      fields.map(({ name, type }) => cellText(type, values.get(name), zone)),
    );
    for (const row of rows) widen(this.#widths, row, width);
    const isFirst = this.#layout === null;
    this.#layout = layOut({ fields, isChosen, screenWidth: width }, this.#titles, this.#widths);
    const { columns } = this.#layout;
    const shown = rows.flatMap((row, i) =>
      wraps ? this.#wholeRecord(records[i]!, row) : [this.#line(columns, records[i]!, row)],
    );
    return [...(isFirst ? [this.#header(columns)] : []), ...shown, ''].join('\n');
  }

  #screenWidth(): number | null {
    const width = this.view.screenWidth();
    return width === null ? null : Math.max(screenWidthMin, width);
  }

  #header(columns: readonly LaidColumn[]): string {
    const cells = columns.map(({ field, width, role }) => fittedText(this.#titles[field]!, width, role));
    return this.#joined(columns, cells, (text) => this.view.paint(text, 'bold'));
  }

  #line(columns: readonly LaidColumn[], { values }: LogRecord, row: readonly string[]): string {
    const isWhole = this.view.screenWidth() === null;
    const cells = columns.map(({ field, width, role }) =>
      isWhole ? oneLine(row[field]!) : fittedText(row[field]!, width, role),
    );
    return this.#joined(columns, cells, (text, i) => this.#painted(text, columns[i]!, values));
  }

  #painted(text: string, { field, role }: LaidColumn, values: LogRecord['values']): string {
    const colour = cellColour(role, values.get(this.view.fields[field]!.name));
    return colour === null ? text : this.view.paint(text, colour);
  }

  /** Joins cells to a line. Cells are padded before they are coloured, as colour codes would count as width. */
  #joined(
    columns: readonly LaidColumn[],
    cells: readonly string[],
    paint: (text: string, i: number) => string,
  ): string {
    const last = cells.findLastIndex((cell) => cell !== '');
    return cells
      .slice(0, last + 1)
      .map((cell, i) => {
        const { width, field } = columns[i]!;
        const isNumber = ['int', 'float'].includes(this.view.fields[field]!.type);
        const padded = isNumber
          ? padStartToWidth(cell, width)
          : i === last
            ? cell
            : padEndToWidth(cell, width);
        return padded.replace(cell, () => paint(cell, i));
      })
      .join(' '.repeat(gap));
  }

  /** A record in full: cells are wrapped within their columns, and fields without a column are listed below. */
  #wholeRecord({ values }: LogRecord, row: readonly string[]): string[] {
    const { columns, hidden } = this.#layout!;
    const { fields, paint } = this.view;
    const cells = columns.map(({ field, width }) =>
      manyLines(row[field]!).flatMap((line) =>
        this.#screenWidth() === null ? [line] : wrapToWidth(line, width),
      ),
    );
    const height = Math.max(...cells.map((lines) => lines.length));
    const lines: string[] = [];
    for (let y = 0; y < height; y++) {
      const across = cells.map((cell) => cell[y] ?? '');
      lines.push(this.#joined(columns, across, (text, i) => this.#painted(text, columns[i]!, values)));
    }
    const width = (this.#screenWidth() ?? Infinity) - indent;
    for (const i of hidden) {
      if (row[i] === '') continue;
      const name = fields[i]!.name;
      const [first = '', ...rest] = manyLines(row[i]!).flatMap((line, y) =>
        wrapToWidth(y === 0 ? `${name}=${line}` : line, width),
      );
      const named = first.startsWith(`${name}=`)
        ? `${paint(`${name}=`, 'dim')}${first.slice(name.length + 1)}`
        : first;
      for (const line of [named, ...rest]) lines.push(`${' '.repeat(indent)}${line}`);
    }
    return lines;
  }
}

import { readRecordLine } from '../../viewer/records/record-line.js';
import type { LogRecord } from '../../viewer/records/record.js';
import type { Field } from '../../viewer/query/field.js';
import { oneLine, padEndToWidth, padStartToWidth, printable, wrapToWidth } from '../output/text-width.js';
import type { Paint } from './colour.js';
import { cellColour, cellText, fittedText, manyLines } from './record-cells.js';
import { gap, layOut, widen, type LaidColumn, type Layout, type NaturalWidths } from './record-layout.js';

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
  readonly #view: RecordView;
  readonly #titles: readonly string[];
  readonly #widths: NaturalWidths;
  #layout: Layout | null = null;
  /** Number of records so far, and the cursors of the first and the last one. */
  count = 0;
  first: string | null = null;
  last: string | null = null;

  constructor(view: RecordView) {
    this.#view = view;
    this.#titles = view.fields.map(({ name, type }) =>
      printable(type === 'time' ? `${name} (${view.zone})` : name),
    );
    this.#widths = view.fields.map(() => 0);
  }

  /** Number of fields that have no column. */
  get hidden(): number {
    return this.#view.wraps ? 0 : (this.#layout?.hidden.length ?? 0);
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
    const { fields, zone, wraps, isChosen } = this.#view;
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
    const width = this.#view.screenWidth();
    return width === null ? null : Math.max(screenWidthMin, width);
  }

  #header(columns: readonly LaidColumn[]): string {
    const cells = columns.map(({ field, width, role }) => fittedText(this.#titles[field]!, width, role));
    return this.#joined(columns, cells, (text) => this.#view.paint(text, 'bold'));
  }

  #line(columns: readonly LaidColumn[], { values }: LogRecord, row: readonly string[]): string {
    const isWhole = this.#view.screenWidth() === null;
    const cells = columns.map(({ field, width, role }) =>
      isWhole ? oneLine(row[field]!) : fittedText(row[field]!, width, role),
    );
    return this.#joined(columns, cells, (text, i) => this.#painted(text, columns[i]!, values));
  }

  #painted(text: string, { field, role }: LaidColumn, values: LogRecord['values']): string {
    const colour = cellColour(role, values.get(this.#view.fields[field]!.name));
    return colour === null ? text : this.#view.paint(text, colour);
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
        const isNumber = ['int', 'float'].includes(this.#view.fields[field]!.type);
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
    const { fields, paint } = this.#view;
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

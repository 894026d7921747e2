import type { LineFormat, Query, Schema } from '../../../engine/index.js';
import { coloured, hasColours, plain, type ColourChoice } from '../display/colour.js';
import { RecordDisplay } from '../display/record-display.js';
import { formatCounted } from '../output/figures.js';
import { screenWidth, tell, writeOut, writeRecords } from '../output/terminal.js';

/** The formats of the HTTP route, and `table`, which is for people. */
export type ShownFormat = LineFormat | 'table';

/** The flags that choose how records are written. */
export interface FormatFlags {
  readonly jsonl?: boolean;
  readonly json?: boolean;
  readonly csv?: boolean;
  readonly table?: boolean;
  readonly wrap?: boolean;
  readonly color: ColourChoice;
}

/** The format that the flags choose. Without one it is `table` on a terminal, else undefined, which means JSON Lines. */
export function formatOf({ jsonl, json, csv, table, wrap }: FormatFlags): ShownFormat | undefined {
  if (json === true) return 'json';
  if (csv === true) return 'csv';
  if (jsonl === true) return 'jsonl';
  return table === true || wrap === true || process.stdout.isTTY ? 'table' : undefined;
}

/** Writes the records of an answer to standard output. */
export interface RecordOutput {
  /** Writes whole lines. The buffer may be reused once the promise has resolved. */
  write(piece: Uint8Array): Promise<void>;
  /** Ends the answer. On a terminal it prints notes for the user, such as how to get the next records. */
  end(): void;
}

/** What an output needs to know about the query. */
export interface OutputContext {
  readonly query: Query;
  readonly schema: Schema;
  readonly zone: string;
  readonly flags: FormatFlags;
}

/** Makes the output for the format that the flags choose. */
export function recordOutput(context: OutputContext): RecordOutput {
  if (formatOf(context.flags) === 'table') return new DisplayOutput(context);
  return { write: writeRecords, end: () => undefined };
}

class DisplayOutput implements RecordOutput {
  readonly #display: RecordDisplay;
  readonly #query: Query;

  constructor({ query, schema, zone, flags: { color, wrap } }: OutputContext) {
    const chosen = query.form?.fields ?? null;
    const names = chosen?.map((field) => schema.fields[field]!) ?? schema.fields;
    this.#query = query;
    this.#display = new RecordDisplay({
      fields: names.map(({ name, type }) => ({ name, type })),
      isChosen: chosen !== null,
      zone,
      wraps: wrap === true,
      paint: hasColours(color, process.stdout.isTTY, process.env) ? coloured : plain,
      screenWidth,
    });
  }

  write(piece: Uint8Array): Promise<void> {
    const text = Buffer.from(piece.buffer, piece.byteOffset, piece.length).toString('utf8');
    return writeOut(this.#display.show(text));
  }

  end(): void {
    if (!process.stdout.isTTY || !process.stderr.isTTY) return;
    const { count, first, last, hidden } = this.#display;
    const { limit, after } = this.#query;
    if (count === 0 && limit > 0) tell('no record matches');
    const more =
      after === undefined ? `--before ${first}: the records before` : `--after ${last}: the next ones`;
    const notes = [
      ...(count === 0 || count < limit ? [] : [more]),
      ...(hidden === 0 ? [] : [`--wrap: ${formatCounted(hidden, 'more field')}`]),
    ];
    if (notes.length > 0) tell(`(${notes.join('; ')})`);
  }
}

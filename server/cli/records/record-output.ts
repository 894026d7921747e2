import type { LineFormat, Query, Schema } from '../../../engine/index.js';
import { coloured, hasColours, plain, type ColourChoice } from '../display/colour.js';
import { RecordDisplay } from '../display/record-display.js';
import { formatCounted } from '../output/figures.js';
import { screenWidth, tell, writeOut, writeRecords } from '../output/terminal.js';

/** The formats of the route, and lines for people. */
export type ShownFormat = LineFormat | 'table';

export interface FormatFlags {
  readonly jsonl?: boolean;
  readonly json?: boolean;
  readonly csv?: boolean;
  readonly table?: boolean;
  readonly wrap?: boolean;
  readonly color: ColourChoice;
}

/** The format that a flag asks for; without one, lines for people on a terminal, and else undefined, which is JSON Lines. */
export function formatOf({ jsonl, json, csv, table, wrap }: FormatFlags): ShownFormat | undefined {
  if (json === true) return 'json';
  if (csv === true) return 'csv';
  if (jsonl === true) return 'jsonl';
  return table === true || wrap === true || process.stdout.isTTY ? 'table' : undefined;
}

/** Where the records of an answer go. */
export interface RecordOutput {
  /** Whole lines, which may be written over when this resolves. */
  write(piece: Uint8Array): Promise<void>;
  /** Says at a terminal what there is to say of an answer that is over. */
  end(): void;
}

/** What an answer is written by. */
export interface OutputContext {
  readonly query: Query;
  readonly schema: Schema;
  readonly zone: string;
  readonly flags: FormatFlags;
}

/** The output for the format that the flags ask for. */
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

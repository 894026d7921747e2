import { existsSync, statSync } from 'node:fs';
import { link, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { LogstrataError, type LineFormat, type Query, type Schema } from '../../engine/index.js';
import {
  coloured,
  hasColours,
  plain,
  type ColourChoice,
  formatCounted,
  screenWidth,
  tell,
  writeOut,
  writeRecords,
} from './terminal.js';
import { RecordDisplay } from './record-display.js';

/**
 * Checks that a file may be written. Throws `exists` where there is a file and `force` is not set, or a folder, which is never replaced;
 * `not_found` where the folder of the file does not exist.
 */
export function requireFree(path: string, force: boolean | undefined): void {
  const folder = dirname(resolve(path));
  if (!existsSync(folder)) {
    throw new LogstrataError('not_found', `can't write ${path}: the folder ${folder} is not there`, { path });
  }
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() === true) {
    throw new LogstrataError('exists', `${path} is a folder: name a file in it`, { path });
  }
  if (force === true || found === undefined) return;
  throw new LogstrataError('exists', `${path} already exists; --force replaces it`, { path });
}

/**
 * Moves finished files (`[written, name]`) to their names, so that a name never refers to an incomplete file. Throws like `requireFree`,
 * also for a file that appears meanwhile. The written files are removed even after a failure.
 */
export async function publishFiles(
  files: readonly (readonly [string, string])[],
  force: boolean | undefined,
): Promise<void> {
  try {
    for (const [, path] of files) requireFree(path, force);
    for (const [written, path] of files) {
      // Unlike a rename, a link fails where somebody has created the file meanwhile.
      if (force === true) await rename(written, path);
      else await link(written, path);
    }
  } finally {
    for (const [written] of files) await rm(written, { force: true });
  }
}

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

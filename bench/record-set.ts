import { createReadStream, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { appRecordLines } from './app-records.js';
import { pickProbes, type Probes } from './probes.js';
import type { Question, SetColumn, SetName } from './question.js';
import { webRecordAsJson, webRecords, type RecordOptions } from './web-records.js';

const column = (
  name: string,
  kind: SetColumn['kind'],
  nullable = false,
  source: string = name,
): SetColumn => ({ name, source, kind, nullable });

/** The fields of each set, as in `bench/agents`. */
export const columnsOf: Readonly<Record<SetName, readonly SetColumn[]>> = {
  web: [
    column('time', 'time'),
    column('remote_addr', 'text'),
    column('remote_user', 'word', true),
    column('method', 'word'),
    column('path', 'text'),
    column('status', 'int'),
    column('bytes', 'int'),
    column('request_time', 'float'),
    column('referer', 'word', true),
    column('user_agent', 'word'),
    column('request_id', 'text'),
    column('message', 'text'),
  ],
  app: [
    column('time', 'time'),
    column('level', 'word'),
    column('service', 'word'),
    column('trace_id', 'int'),
    column('duration', 'float', false, 'duration_ms'),
    column('context', 'text'),
    column('message', 'text'),
  ],
};

/** The columns of the answer to a question. */
export function answerColumns({ set, counting }: Question): readonly SetColumn[] {
  if (counting === undefined) return columnsOf[set];
  const { byHour, column: name } = counting;
  const values = columnsOf[set].filter((known) => known.name === name);
  return [
    ...(byHour ? [column('hour', 'int')] : []),
    ...values.map(({ kind }) => column('value', kind)),
    column('count', 'int'),
  ];
}

/** Number of days that the records of a set are spread over. */
export const setDays = 30;
/** The first day of every set. It is fixed, so that the same options give the same bytes. */
export const setStartMs = Date.UTC(2026, 9, 20);
const seed = 1;
/** To be increased with every change of the generator or the probes: it makes files of earlier runs invalid. */
const generatorVersion = 2;
const pieceChars = 1024 * 1024;

/** A set of records as a file of JSON Lines, with the facts that the questions need. */
export interface RecordSet {
  readonly name: SetName;
  /** Each line has the record's number in the set as `seq`. Peers use it in place of `_cursor`; our side ignores it. */
  readonly path: string;
  readonly rows: number;
  readonly bytes: number;
  readonly probes: Probes;
}

function passOver(_piece: Buffer, _encoding: string, done: () => void): void {
  done();
}

function* linesOf(name: SetName, options: RecordOptions): Generator<string> {
  let seq = 0;
  switch (name) {
    case 'web':
      for (const record of webRecords(options)) yield numbered(++seq, webRecordAsJson(record));
      return;
    case 'app':
      for (const line of appRecordLines(options)) yield numbered(++seq, line);
      return;
  }
}

function numbered(seq: number, line: string): string {
  return `{"seq":${seq},${line.slice(1)}\n`;
}

/**
 * Returns the set of `rows` records in `folder`; generates it unless there is one of an earlier run. Calls `onProgress` with the share that
 * is written.
 */
export async function prepareSet(
  name: SetName,
  rows: number,
  folder: string,
  onProgress: (fraction: number) => void,
): Promise<RecordSet> {
  const path = join(folder, `${name}-${rows}.jsonl`);
  const notePath = `${path}.note.json`;
  if (existsSync(notePath)) {
    const note = JSON.parse(readFileSync(notePath, 'utf8')) as RecordSet & { generatorVersion: number };
    if (note.generatorVersion === generatorVersion && existsSync(path)) {
      // Otherwise the first side would read the file from the disk, and the others from the page cache.
      await pipeline(
        createReadStream(path, { highWaterMark: pieceChars }),
        new Writable({ write: passOver }),
      );
      return { ...note, path };
    }
    rmSync(notePath);
  }
  const bytes = await writeLines(`${path}.new`, name, rows, onProgress);
  const probes = await pickProbes(name, readLines(`${path}.new`), rows);
  renameSync(`${path}.new`, path);
  const set: RecordSet = { name, path, rows, bytes, probes };
  // The note is written last, so that a file of an interrupted run, which has no note, is not used.
  writeFileSync(notePath, JSON.stringify({ generatorVersion, ...set, path: undefined }));
  return set;
}

async function writeLines(
  path: string,
  name: SetName,
  rows: number,
  onProgress: (fraction: number) => void,
): Promise<number> {
  const file = await open(path, 'w');
  let bytes = 0;
  let written = 0;
  let piece = '';
  try {
    const flush = async (): Promise<void> => {
      const encoded = Buffer.from(piece, 'utf8');
      await file.writeFile(encoded);
      bytes += encoded.length;
      piece = '';
      onProgress(written / rows);
    };
    for (const line of linesOf(name, { rows, startMs: setStartMs, days: setDays, seed })) {
      piece += line;
      written++;
      if (piece.length >= pieceChars) await flush();
    }
    await flush();
    // Otherwise the first side would load while the system still writes this file to the disk.
    await file.sync();
  } finally {
    await file.close();
  }
  return bytes;
}

/** The lines of a file without line ends. */
export function readLines(path: string): AsyncIterable<string> {
  return createInterface({
    input: createReadStream(path, { highWaterMark: 1024 * 1024 }),
    crlfDelay: Infinity,
  });
}

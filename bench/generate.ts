#!/usr/bin/env node
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { generateLines } from './generated-lines.js';
import type { RecordOptions } from './web-records.js';

const usage = `Usage: npm run --silent bench:generate -- [options] > FILE

Writes made-up log lines to standard output: the same ones for the same options.

  --rows N        lines to write (default 100000)
  --days N        days they are spread over (default 30)
  --start DATE    first day, YYYY-MM-DD, UTC (default 2026-10-20)
  --seed N        seed of the pseudo-random numbers (default 1)
  --format NAME   json      a web server's records as JSON, about 500 bytes each (default)
                  combined  the same as lines of nginx's combined format, about 230 bytes each
                  app       an application's log as JSON

Example: npm run --silent bench:generate -- --rows 1000000 --format combined > access.log
`;

/** Characters that are written at once: enough to make the cost of a write negligible. */
const pieceChars = 256 * 1024;

function fail(message: string): never {
  process.stderr.write(`generate: ${message}\n\n${usage}`);
  process.exit(2);
}

function wholeNumber(name: string, text: string, min: number): number {
  if (!/^\d{1,15}$/.test(text) || Number(text) < min)
    fail(`--${name} must be a whole number from ${min} on, not "${text}"`);
  return Number(text);
}

function readOptions(): { format: string; options: RecordOptions } | undefined {
  const text = { type: 'string' } as const;
  const options = {
    rows: text,
    days: text,
    start: text,
    seed: text,
    format: text,
    help: { type: 'boolean' },
  } as const;
  try {
    const { values } = parseArgs({ options });
    if (values.help === true) return undefined;
    const start = values.start ?? '2026-10-20';
    const startMs = Date.parse(`${start}T00:00:00Z`);
    if (!/^\d{4}-\d\d-\d\d$/.test(start) || Number.isNaN(startMs))
      fail(`--start must be YYYY-MM-DD, not "${start}"`);
    return {
      format: values.format ?? 'json',
      options: {
        rows: wholeNumber('rows', values.rows ?? '100000', 0),
        days: wholeNumber('days', values.days ?? '30', 1),
        seed: wholeNumber('seed', values.seed ?? '1', 0),
        startMs,
      },
    };
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error));
  }
}

async function writePieces(lines: Generator<string>): Promise<void> {
  let piece = '';
  for (const line of lines) {
    piece += `${line}\n`;
    if (piece.length < pieceChars) continue;
    if (!process.stdout.write(piece)) await once(process.stdout, 'drain');
    piece = '';
  }
  if (piece !== '') process.stdout.write(piece);
}

async function main(): Promise<void> {
  const read = readOptions();
  if (read === undefined) {
    process.stdout.write(usage);
    return;
  }
  const lines = generateLines(read.format, read.options);
  if (lines === undefined) fail(`--format must be json, combined or app, not "${read.format}"`);
  // A closed pipe (`| head`) is not a failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  await writePieces(lines);
}

await main();

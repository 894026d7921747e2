import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { AgentDefinition, FileInput } from '../../../agents/definition/definition.js';
import { loadFiles, type LoadFilesOptions } from '../../../agents/load/load.js';
import type { LoadSummary } from '../../../agents/load/load-report.js';
import { loadStream, type LoadStreamOptions, type StreamSummary } from '../../../agents/load/load-stream.js';
import type { Archive } from '../../../engine/archive/archive.js';
import type { AgentStore } from '../../../engine/archive/agent-store.js';
import { openArchive, WorkerPool, workersDefault } from '../../../engine/index.js';
import { makeSchema } from '../../../engine/core/schema.js';
import { closeAtEnd } from './temporary.js';

/** The clock of these tests: 2026-11-21 12:00 UTC. */
export const nowMs = Date.UTC(2026, 10, 21, 12);

/** Lines `2026-11-20T10:00:00Z 17 some text`. */
export function definitionOf(file: Partial<FileInput> = {}): AgentDefinition {
  const fields = [
    { name: 'time', type: 'time', source: 'time', timestamp: { format: 'rfc3339' } },
    { name: 'n', type: 'int', source: 'n' },
    { name: 'text', type: 'string', source: 'text' },
    { name: 'host', type: 'string', source: 'host' },
  ] as const;
  return {
    name: 'app',
    path: 'agents/app.yaml',
    fields,
    schema: makeSchema(fields),
    notes: [],
    file: {
      directory: '/var/log',
      namePattern: 'app_(?P<host>.*)\\.log',
      format: 'plain',
      regex: '^(?P<time>\\S+) (?P<n>\\S+) (?P<text>.*)$',
      ...file,
    },
  };
}

/** The line of record `n`: one per second from 2026-11-20 00:00 on. */
export function lineOf(n: number): string {
  const time = new Date(Date.UTC(2026, 10, 20) + n * 1000).toISOString().slice(0, 19);
  return `${time}Z ${n} some text of line ${n}\n`;
}

/** Lines of the records `from` to `to - 1`. */
export function lines(from: number, to: number): string {
  let text = '';
  for (let n = from; n < to; n++) text += lineOf(n);
  return text;
}

/** Threads that all archives share, so that not each starts its own. */
const workers = new WorkerPool(workersDefault());
afterAll(() => workers.close());

/** An archive in a folder, which is closed at the end of the test. */
export async function archiveAt(folder: string): Promise<Archive> {
  const archive = await openArchive(folder, { mode: 'write', role: 'load', now: () => nowMs, workers });
  closeAtEnd(() => archive.close());
  return archive;
}

export interface Stored {
  readonly _cursor: string;
  readonly time: number | null;
  readonly n: number | null;
  readonly text: string | null;
  readonly host: string | null;
}

/** Every record of the store, in order of position. */
export async function recordsOf(store: AgentStore): Promise<Stored[]> {
  const after = { partition: 0, ordinal: 0 };
  const scan = await store.scan({ limit: 10_000_000, after, predicates: [] });
  const pieces: Buffer[] = [];
  for await (const piece of scan.lines) pieces.push(Buffer.from(piece));
  const text = Buffer.concat(pieces).toString().trimEnd();
  return text === '' ? [] : text.split('\n').map((line) => JSON.parse(line) as Stored);
}

/** The rejected lines that are stored with the records. */
export async function rejectedOf(folder: string): Promise<Record<string, unknown>[]> {
  const place = join(folder, 'app', 'rejected');
  const names = await readdir(place).catch(() => []);
  const texts = await Promise.all(names.sort().map((name) => readFile(join(place, name), 'utf8')));
  return texts
    .join('')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

type Defaults = 'store' | 'definition' | 'timezone' | 'now';

/** Loads files with the definition and the clock of these tests. */
export function load(
  store: AgentStore,
  files: readonly string[],
  options: Partial<LoadFilesOptions> = {},
): Promise<LoadSummary> {
  return loadFiles({
    store,
    files,
    definition: definitionOf(),
    timezone: 'UTC',
    now: () => nowMs,
    ...options,
  });
}

/** Loads a stream with the definition and the clock of these tests. */
export function pour(
  store: AgentStore,
  options: Omit<LoadStreamOptions, Defaults> & Partial<Pick<LoadStreamOptions, Defaults>>,
): Promise<StreamSummary> {
  return loadStream({ store, definition: definitionOf(), timezone: 'UTC', now: () => nowMs, ...options });
}

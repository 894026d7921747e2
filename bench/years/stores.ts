import { BatchBuilder } from '../../engine/columns/batch-builder.js';
import type { ColumnBuilder } from '../../engine/columns/column-builder.js';
import { makeSchema } from '../../engine/core/schema.js';
import { hourMs } from '../../engine/core/cursor.js';
import { rowGroupRowsMax, segmentRowGroupsMax } from '../../engine/core/limits.js';
import { Archive } from '../../engine/archive/archive.js';
import { type CommitExtras, segmentFile } from '../../engine/store/manifest/commit.js';
import type { Directory } from '../../engine/store/disk/directory.js';
import type { Manifest, Run, SegmentEntry } from '../../engine/store/manifest/manifest.js';
import { publishManifest, readNewestManifest } from '../../engine/store/manifest/manifest-file.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import { connectToWriter, lockForWriting } from '../../engine/store/writer/writer-link.js';
import { Random } from '../random.js';

/** The fields of all agents. */
export const schema = makeSchema([
  { name: 'time', type: 'time' },
  { name: 'host', type: 'string' },
  { name: 'status', type: 'int' },
  { name: 'took', type: 'float' },
  { name: 'message', type: 'string' },
]);

/** The end of the last day in every store, which is also the time at which they are queried. */
export const endMs = Date.UTC(2026, 0, 1);
const dayMs = 24 * hourMs;
/** Number of real records at the end of the last day of an agent whose other segments exist only as manifest entries. */
const realRows = rowGroupRowsMax;

const noExtras: CommitExtras = {
  checkpoints: [],
  rejected: [],
  counters: { unreadableValues: 0, replacedBytes: 0, inputBytes: 0 },
};

/** A batch of `rows` records, evenly spread over [fromMs, untilMs). */
function records(random: Random, fromMs: number, untilMs: number, rows: number) {
  const builder = new BatchBuilder(schema);
  for (let i = 0; i < rows; i++) {
    const values = [
      Math.floor(fromMs + ((untilMs - fromMs) * i) / rows),
      `host-${random.uint32() % 20}`,
      random.uint32() % 50 === 0 ? 500 : 200,
      random.fraction(),
      `request ${random.uint32().toString(16)} took its way through ${random.uint32() % 100} steps`,
    ];
    values.forEach((value, field) => setValue(builder.column(field), value));
    builder.endRow();
  }
  return builder.finish();
}

function setValue(column: ColumnBuilder, value: number | string): void {
  if (column.kind === 'string') column.setString(String(value));
  else column.setNumber(Number(value));
}

async function openAt(directory: Directory, now: () => number): Promise<Archive> {
  const archive = new Archive(
    directory,
    { mode: 'write', role: 'bench', now, removalDelayMs: 0, background: { threads: 0 } },
    {
      lock: () => lockForWriting(directory.location, 'bench'),
      connect: () => connectToWriter(directory.location),
    },
  );
  await archive.start();
  return archive;
}

/** The archive of a quiet agent. */
export interface QuietYear {
  readonly records: number;
  readonly segments: number;
  readonly rewrites: number;
}

/**
 * Fills an agent `quiet` for `days` days with `perDay` records each, in four commits a day, with a simulated clock. Each day is
 * sealed once it has ended, and background compaction does what is due after each commit.
 */
export async function fillQuietYear(location: string, days: number, perDay: number): Promise<QuietYear> {
  const random = new Random(1);
  let nowMs = endMs - days * dayMs;
  const archive = await openAt(await openRealDirectory(location, { create: true }), () => nowMs);
  const store = await archive.agent('quiet', schema);
  const commits = 4;
  let rewrites = 0;
  for (let i = 0; i < days * commits; i++) {
    const fromMs = nowMs;
    nowMs += dayMs / commits;
    const rows = Math.floor(perDay / commits) + (i % commits < perDay % commits ? 1 : 0);
    if (rows > 0) await store.append(records(random, fromMs, nowMs, rows), noExtras, 'live');
    while (await archive.compactNext()) rewrites++;
  }
  const { records: total, segments } = await store.stats();
  await archive.close();
  return { records: total, segments, rewrites };
}

/**
 * Makes agents whose manifests list `days` days with `perDay` records each, in segments of maximum size. Only the newest segment of each
 * exists, with 64 Ki real records; the others are entries without files, so a query that reads one of them fails.
 */
export async function fillAgents(
  location: string,
  agents: readonly string[],
  days: number,
  perDay: number,
): Promise<void> {
  const directory = await openRealDirectory(location, { create: true });
  const archive = await openAt(directory, () => endMs);
  for (const [i, name] of agents.entries()) {
    const store = await archive.agent(name, schema);
    const session = await store.beginLoad();
    try {
      await session.append(records(new Random(i), endMs - hourMs / 2, endMs - 1, realRows), 0);
      await session.commit({ checkpoints: [], counters: noExtras.counters });
    } finally {
      await session.abort();
    }
  }
  await archive.close();
  for (const name of agents) {
    const manifest = (await readNewestManifest(directory, name))!;
    await publishManifest(directory, name, withDaysBefore(manifest, days, perDay));
  }
}

/** The manifest with added entries for the hours before its records. */
function withDaysBefore(manifest: Manifest, days: number, perDay: number): Manifest {
  const last = manifest.segments[0]!.runs[0]!;
  const first = last.partition + 1 - days * 24;
  const perHour = Math.floor(perDay / 24);
  const segments: SegmentEntry[] = [];
  for (let day = first; day <= last.partition; day += 24) {
    const hours = Array.from({ length: 24 }, (_, i) => day + i).filter((hour) => hour < last.partition);
    segments.push(...entriesOf(manifest.segments[0]!, hours, perHour));
  }
  const nextOrdinals = Array.from(
    { length: last.partition - first },
    (_, i) => [first + i, perHour + 1] as const,
  );
  return {
    ...manifest,
    number: manifest.number + 1,
    segments: [...segments, ...manifest.segments],
    nextOrdinals: [...nextOrdinals, ...manifest.nextOrdinals],
  };
}

/** Entries for hours of one day; the other properties are copied from `model`. */
function entriesOf(model: SegmentEntry, hours: readonly number[], perHour: number): SegmentEntry[] {
  const rowsMax = rowGroupRowsMax * segmentRowGroupsMax;
  const entries: SegmentEntry[] = [];
  let runs: Run[] = [];
  let rows = 0;
  const end = (): void => {
    if (rows === 0) return;
    const groups = Math.ceil(rows / rowGroupRowsMax);
    entries.push({
      ...model,
      file: segmentFile(`simulated${runs[0]!.partition}`, entries.length, runs[0]!.partition),
      bytes: Math.ceil((model.bytes / model.rows) * rows),
      rows,
      rowGroupRows: Array.from({ length: groups }, (_, i) =>
        i < groups - 1 ? rowGroupRowsMax : rows - (groups - 1) * rowGroupRowsMax,
      ),
      runs,
      timeMinMs: runs[0]!.partition * hourMs,
      timeMaxMs: (runs.at(-1)!.partition + 1) * hourMs - 1,
      replaces: [],
    });
    runs = [];
    rows = 0;
  };
  for (const partition of hours) {
    for (let ordinal = 1; ordinal <= perHour;) {
      const taken = Math.min(perHour + 1 - ordinal, rowsMax - rows);
      runs.push({ partition, firstOrdinal: ordinal, firstRow: rows, rows: taken });
      rows += taken;
      ordinal += taken;
      if (rows === rowsMax) end();
    }
  }
  end();
  return entries;
}

import { join } from 'node:path';
import { readAgentFile } from '../../agents/definition/agent-file.js';
import type { AgentDefinition } from '../../agents/definition/definition.js';
import { BatchBuilder, openArchive, type ColumnBuilder } from '../../engine/index.js';
import { packageRoot } from '../../server/cli/options.js';
import { webRecords, type WebRecord } from '../web-records.js';

/** The end of all archives, which is also the time at which they are queried. */
export const endMs = Date.UTC(2026, 9, 20);
const hourMs = 3_600_000;
/** Rows per batch. */
const batchRows = 16_384;

/** The agent of web records, as in the other benchmarks. With `isFull`, its messages have `index: full`. */
export function webAgent(isFull: boolean): Pick<AgentDefinition, 'name' | 'schema'> {
  const { name, schema } = readAgentFile(join(packageRoot(), 'bench/agents/web.yaml'));
  if (!isFull) return { name, schema };
  const fields = schema.fields.map((field) =>
    field.name === 'message' ? { ...field, index: 'full' as const } : field,
  );
  return { name, schema: { fields } };
}

/** Records that are added after those in the archive. */
export interface Portion {
  /** As for `webAgent`. */
  readonly isFull: boolean;
  readonly rows: number;
  readonly startMs: number;
  readonly days: number;
  readonly seed: number;
}

/** The portions by which an archive grows from one size to the next, at a constant rate. */
export function portionsOf(sizes: readonly number[], days: number, isFull: boolean): Portion[] {
  const hours = days * 24;
  const hourOf = (rows: number): number => Math.round((hours * rows) / sizes.at(-1)!);
  return sizes.map((size, i) => {
    const before = i === 0 ? 0 : sizes[i - 1]!;
    const from = hourOf(before);
    const until = Math.max(from + 1, hourOf(size));
    return {
      isFull,
      rows: size - before,
      startMs: endMs - (hours - from) * hourMs,
      days: (until - from) / 24,
      seed: i + 1,
    };
  });
}

/** The archive after records were added. */
export interface Filled {
  readonly records: number;
  readonly segments: number;
  readonly rowGroups: number;
  readonly bytes: number;
  /** The record with index `wanted` among those that were added. */
  readonly wanted: WebRecord;
}

/**
 * Adds generated records to the agent `web` of the archive, as one load.
 *
 * @param wanted index of the added record to return, counted from 0
 */
export async function addRecords(
  location: string,
  portion: Portion,
  wanted: number,
  signal: AbortSignal,
  onProgress: (fraction: number) => void,
): Promise<Filled> {
  const { name, schema } = webAgent(portion.isFull);
  const archive = await openArchive(location, {
    mode: 'write',
    role: 'bench',
    now: () => endMs,
    background: { threads: 0 },
  });
  try {
    const store = await archive.agent(name, schema);
    const session = await store.beginLoad();
    let found: WebRecord | undefined;
    try {
      const builder = new BatchBuilder(schema);
      let rows = 0;
      for (const record of webRecords(portion)) {
        if (rows++ === wanted) found = record;
        setRow(builder, record);
        if (builder.rows < batchRows) continue;
        signal.throwIfAborted();
        await session.append(builder.finish(), 0);
        onProgress(rows / portion.rows);
      }
      if (builder.rows > 0) await session.append(builder.finish(), 0);
      const counters = { unreadableValues: 0, replacedBytes: 0, inputBytes: 0 };
      await session.commit({ checkpoints: [], counters });
    } finally {
      await session.abort();
    }
    const { records, segments, rowGroups, bytesSealed: bytes } = await store.stats();
    return { records, segments, rowGroups, bytes, wanted: found! };
  } finally {
    await archive.close();
  }
}

function setRow(builder: BatchBuilder, record: WebRecord): void {
  // In the order of the fields in web.yaml.
  [
    record.timeMs,
    record.remoteAddr,
    record.remoteUser,
    record.method,
    record.path,
    record.status,
    record.bytes,
    record.requestTime,
    record.referer,
    record.userAgent,
    record.requestId,
    record.message,
  ].forEach((value, field) => {
    if (value !== null) setValue(builder.column(field), value);
  });
  builder.endRow();
}

function setValue(column: ColumnBuilder, value: number | string): void {
  if (column.kind === 'string') column.setString(String(value));
  else column.setNumber(Number(value));
}

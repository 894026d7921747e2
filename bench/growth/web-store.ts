import { join } from 'node:path';
import { readAgentFile } from '../../agents/definition/agent-file.js';
import type { AgentDefinition } from '../../agents/definition/definition.js';
import { BatchBuilder, openArchive, type ColumnBuilder } from '../../engine/index.js';
import { packageRoot } from '../../server/cli/options/package-root.js';
import { webRecords, type WebRecord } from '../web-records.js';

/** All archives end here, and then it is when they are asked. */
export const endMs = Date.UTC(2026, 9, 20);
const hourMs = 3_600_000;
/** Rows that are handed over at once. */
const batchRows = 16_384;

/** The agent of the web server's records, as the other benchmarks have it; `isFull`: its messages have `index: full`. */
export function webAgent(isFull: boolean): Pick<AgentDefinition, 'name' | 'schema'> {
  const { name, schema } = readAgentFile(join(packageRoot(), 'bench/agents/web.yaml'));
  if (!isFull) return { name, schema };
  const fields = schema.fields.map((field) =>
    field.name === 'message' ? { ...field, index: 'full' as const } : field,
  );
  return { name, schema: { fields } };
}

/** Records that follow those that the archive has. */
export interface Portion {
  /** As `webAgent` has it. */
  readonly isFull: boolean;
  readonly rows: number;
  readonly startMs: number;
  readonly days: number;
  readonly seed: number;
}

/** The portions that bring an archive from one size to the next, at the same rate all the time. */
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

/** What an archive has come to. */
export interface Filled {
  readonly records: number;
  readonly segments: number;
  readonly rowGroups: number;
  readonly bytes: number;
  /** The record number `wanted` of those that were added. */
  readonly wanted: WebRecord;
}

/**
 * Adds made-up records to the archive's agent `web` as one load, straight from their generator.
 *
 * @param wanted which of them is given back, counted from 0
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

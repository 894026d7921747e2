import * as arrow from 'apache-arrow';
import type { SchemaElement } from 'hyparquet';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { reportArchive } from '../../agents/archive/archive-report.js';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { hourMs } from '../../engine/core/cursor.js';
import type { Predicate } from '../../engine/core/schema.js';
import { loadFiles } from '../../agents/load/load.js';
import { archiveProblems } from '../../server/cli/check.js';
import { caseCount, fc } from '../cases.js';
import { answer, noon, openOn } from '../engine/store/memory-archive.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { tableOf } from '../foreign/arrow-tables.js';

/** How the times of a file are stored: as times, as texts, or in a structure. */
type Way =
  'time' | 'text' | 'in a structure' | 'text in a structure' | 'text in an Arrow structure' | 'Arrow text';

/** A time (null for a text that is none), how it is written, and a number that tells the row from others. */
interface Row {
  readonly timeMs: number | null;
  readonly text: string | null;
  readonly n: number;
}

const fieldsOf: Readonly<Record<Way, string>> = {
  time: '{ name: t, type: time }',
  text: '{ name: t, timestamp: { format: rfc3339 } }',
  'in a structure': '{ name: t, type: time, source: s.t }',
  'text in a structure': '{ name: t, source: s.inner.t, timestamp: {} }',
  'text in an Arrow structure': '{ name: t, source: s.inner.t, timestamp: {} }',
  'Arrow text': '{ name: t, timestamp: { format: RFC3339 } }',
};

const ways = Object.keys(fieldsOf) as Way[];

/** Writes the rows. Where there is a structure, it is null itself for every other row without a time. */
function bytesOf(way: Way, rows: readonly Row[], rowGroupSize: number): Uint8Array {
  const isArrow = way.includes('Arrow');
  const isText = way.includes('ext');
  const depth = way.includes('structure') ? (isText ? 2 : 1) : 0;
  const values = rows.map(({ timeMs, text }, i) => {
    const leaf = isText ? text : timeMs === null ? null : new Date(timeMs);
    if (depth === 0) return leaf;
    const isNull = leaf === null && i % 2 === 0;
    return isNull ? null : depth === 1 ? { t: leaf } : { inner: isNull ? null : { t: leaf } };
  });
  if (isArrow) {
    const leaf = new arrow.Utf8();
    const nest = (name: string, type: arrow.DataType) =>
      new arrow.Struct([new arrow.Field(name, type, true)]);
    const type = depth === 0 ? leaf : nest('inner', nest('t', leaf));
    const columns = {
      [depth === 0 ? 't' : 's']: { type, values },
      n: { type: new arrow.Int32(), values: rows.map(({ n }) => n) },
    };
    return arrow.tableToIPC(tableOf(columns, rowGroupSize), 'file');
  }
  const leaf: SchemaElement = isText
    ? { name: 't', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' }
    : { name: 't', type: 'INT64', converted_type: 'TIMESTAMP_MILLIS', repetition_type: 'OPTIONAL' };
  const group = (name: string): SchemaElement => ({ name, repetition_type: 'OPTIONAL', num_children: 1 });
  const outer = depth === 0 ? [] : depth === 1 ? [group('s')] : [group('s'), group('inner')];
  const schema: SchemaElement[] = [
    { name: 'root', num_children: 2 },
    ...outer,
    leaf,
    { name: 'n', type: 'INT32', repetition_type: 'REQUIRED' },
  ];
  const columnData = [
    { name: depth === 0 ? 't' : 's', data: values },
    { name: 'n', data: rows.map(({ n }) => n) },
  ];
  return new Uint8Array(parquetWriteBuffer({ schema, columnData, rowGroupSize }));
}

function definitionOf(path: string, fields: string, more = '') {
  const text = `archive: { path: '${path}'${more} }\nfields: [${fields}, { name: n, type: int }]`;
  return parseAgentFile(text, join(path, '../lake.yaml'));
}

const folderOf = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'logstrata-times-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

/** Writes a time in one of the forms that RFC 3339 has, in some zone. */
const textOf = (timeMs: number, offsetMinutes: number, form: number): string => {
  const local = new Date(timeMs + offsetMinutes * 60_000).toISOString().slice(0, -1);
  const sign = offsetMinutes < 0 ? '-' : '+';
  const two = (value: number): string => String(value).padStart(2, '0');
  const ahead = Math.abs(offsetMinutes);
  const zone =
    offsetMinutes === 0 && form < 2 ? 'Z' : `${sign}${two(Math.floor(ahead / 60))}:${two(ahead % 60)}`;
  const written = form % 2 === 0 ? local : `${local}999`;
  return (form === 3 ? written.replace('T', ' ') : written) + zone;
};

const aRow = fc.record({
  minutes: fc.integer({ min: -400, max: 90 }),
  ms: fc.nat(59_999),
  offset: fc.constantFrom(0, 0, 60, -330, 840),
  form: fc.nat(3),
  kind: fc.constantFrom('time', 'time', 'time', 'time', 'null', 'no time'),
});

const rowsOf = fc.array(aRow, { minLength: 1, maxLength: 40 }).map((list) => {
  const rows = list.map(({ minutes, ms, offset, form, kind }, n): Row => {
    const timeMs = noon + minutes * 60_000 + ms;
    if (kind !== 'time') return { timeMs: null, text: kind === 'null' ? null : 'yesterday', n };
    return { timeMs, text: textOf(timeMs, offset, form), n };
  });
  // A file in which no text is a time is refused.
  return [...rows, { timeMs: noon, text: textOf(noon, 0, 0), n: rows.length }];
});

const filters = (sinceMs: number, untilMs: number): Predicate[] => [
  { kind: 'int', field: 0, op: 'gte', value: BigInt(sinceMs) },
  { kind: 'int', field: 0, op: 'lt', value: BigInt(untilMs) },
];

async function answersOf(store: AgentStore, bounds: readonly [number, number]): Promise<string[]> {
  const all = await answer(store, { limit: 1000 });
  return [all, await answer(store, { limit: 1000, predicates: filters(...bounds) })];
}

describe('times that are texts, or in structures', () => {
  it('place and filter records as times do, before and after they are indexed, and when they are stored', async () => {
    const folder = folderOf();
    const archive = await openOn(new MemoryDirectory());
    let agents = 0;
    await fc.assert(
      fc.asyncProperty(
        rowsOf,
        fc.constantFrom(1, 3, 7, 100),
        fc.integer({ min: -400, max: 90 }),
        fc.integer({ min: 1, max: 200 }),
        async (rows, rowGroupSize, from, length) => {
          const bounds = [noon + from * 60_000, noon + (from + length) * 60_000] as const;
          const found: string[][] = [];
          for (const [i, way] of ways.entries()) {
            const format = way.includes('Arrow') ? 'arrow' : 'parquet';
            const path = join(folder, `${i}.${format}`);
            writeFileSync(path, bytesOf(way, rows, rowGroupSize));
            const definition = definitionOf(path, fieldsOf[way], ', mode: import');
            const store = await archive.agent(`attached-${++agents}`, definition.schema);
            const adds = [{ path, format, constants: {} } as const];
            expect((await store.attach({ adds, moves: [], removes: [] }, {})).problems).toEqual([]);
            const inPlace = await answersOf(store, bounds);
            expect((await store.indexAttached({})).problems).toEqual([]);
            expect(await answersOf(store, bounds)).toEqual(inPlace);
            const stored = await archive.agent(`stored-${agents}`, definition.schema);
            await loadFiles({ store: stored, definition, timezone: 'UTC', now: () => noon, files: [path] });
            found.push([...inPlace, ...(await answersOf(stored, bounds))]);
          }
          for (const [i, way] of ways.entries()) expect([way, found[i]]).toEqual([way, found[0]]);
          const numbers = (lines: string): number[] =>
            lines.split('\n').flatMap((line) => (line === '' ? [] : (JSON.parse(line) as { n: number }).n));
          // Each row is in the hour of its time, at most of now; without a time, in that of the row before it.
          let hour = Math.floor(noon / hourMs);
          const hours = rows.map(({ timeMs, n }) => {
            if (timeMs !== null) hour = Math.floor(Math.min(timeMs, noon) / hourMs);
            return { hour, n };
          });
          const inOrder = hours.toSorted((a, b) => a.hour - b.hour || a.n - b.n).map(({ n }) => n);
          expect(numbers(found[0]![0]!)).toEqual(inOrder);
          const within = rows.filter(
            ({ timeMs }) => timeMs !== null && timeMs >= bounds[0] && timeMs < bounds[1],
          );
          expect(numbers(found[0]![1]!).toSorted((a, b) => a - b)).toEqual(within.map(({ n }) => n));
        },
      ),
      { numRuns: caseCount(20) },
    );
    await archive.close();
  });

  it.each([
    ['2006-01-02 15:04:05', '2026-11-20 08:30:00', ", timezone: '+02:00'", Date.UTC(2026, 10, 20, 6, 30)],
    ['2006-01-02 15:04:05', '2026-11-20 08:30:00', '', Date.UTC(2026, 10, 20, 8, 30)],
    ['common', '20/Nov/2026:08:30:00 +0100', '', Date.UTC(2026, 10, 20, 7, 30)],
    ['unix', '1795163400.25', '', 1_795_163_400_250],
  ])('may be of the format %s', async (format, text, more, timeMs) => {
    const path = join(folderOf(), '1.parquet');
    writeFileSync(path, bytesOf('text', [{ timeMs: null, text, n: 7 }], 10));
    const { schema } = definitionOf(path, `{ name: t, timestamp: { format: '${format}'${more} } }`);
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('lake', schema);
    await store.attach({ adds: [{ path, format: 'parquet', constants: {} }], moves: [], removes: [] }, {});
    expect(JSON.parse(await answer(store, { limit: 1 }))).toMatchObject({ t: timeMs, n: 7 });
    await archive.close();
  });

  it('are refused by name where no text is one, and are proposed by check where the bounds are', async () => {
    const path = join(folderOf(), '1.parquet');
    writeFileSync(path, bytesOf('text', [{ timeMs: null, text: '20261120T083000Z', n: 7 }], 10));
    const refused = definitionOf(path, '{ name: t, timestamp: { format: common } }');
    const archive = await openOn(new MemoryDirectory());
    const store = await archive.agent('lake', refused.schema);
    const adds = [{ path, format: 'parquet', constants: {} } as const];
    const { problems } = await store.attach({ adds, moves: [], removes: [] }, {});
    const message = `${path} has no text in column "t" that is a time of the format common`;
    expect(problems.map(({ error }) => error.message)).toEqual([message]);
    await archive.close();
    const problemsOf = async (fields: string): Promise<string[]> => {
      const definition = definitionOf(path, fields);
      const report = await reportArchive(definition, definition.archive!, undefined, undefined, () => {});
      return archiveProblems(definition, report);
    };
    expect(await problemsOf(fieldsOf.text)).toEqual([]);
    expect(await problemsOf(fieldsOf.time)).toEqual([
      expect.stringContaining('give the format of its texts (timestamp: { format: rfc3339 })'),
    ]);
    writeFileSync(
      path,
      bytesOf('text in a structure', [{ timeMs: null, text: '20261120T083000Z', n: 7 }], 10),
    );
    expect(await problemsOf(fieldsOf['text in a structure'])).toEqual([]);
    expect(await problemsOf('{ name: t, source: s.inner.x, timestamp: {} }')).toEqual([
      expect.stringContaining('reads the column "s.inner.x", which no file has'),
      expect.stringContaining('has no times in the column "s.inner.x"'),
    ]);
  });
});

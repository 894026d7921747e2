import * as arrow from 'apache-arrow';
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { ArchiveAttaching } from '../../agents/archive/archive-attaching.js';
import { reportArchive, completedDefinition } from '../../agents/archive/archive-report.js';
import { parseAgentFile } from '../../agents/definition/agent-file.js';
import type { AgentDefinition } from '../../agents/definition/definition.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import type { Query } from '../../engine/scan/query.js';
import { openCompressor } from '../../engine/parquet/compression.js';
import { makeSchema, timeUnits, type Schema, type TimeUnit } from '../../engine/core/schema.js';
import { answer, openOn } from '../engine/store/memory-archive.js';
import { answerOf } from '../model/answer.js';
import { datasets, queries, strangeSchema } from '../model/arbitraries.js';
import type { Dataset, Value } from '../model/dataset.js';
import { MemoryDirectory } from '../storage-doubles/memory-directory.js';
import { compressedMessage, fileOf, messagesOf, type ArrowMessage } from './arrow-bytes.js';
import { tableOf } from './arrow-tables.js';
import { placed, type Row } from './placed-rows.js';

const hourMs = 3_600_000;
const nowMs = Date.UTC(2025, 0, 3);
const everything: Query = { limit: 1_000_000, after: undefined, before: undefined, predicates: [] };
const agentFile = "archive: { path: ['*.arrow', '*.arrows'] }\n";

const timestamps = {
  s: new arrow.TimestampSecond(),
  ms: new arrow.TimestampMillisecond('UTC'),
  us: new arrow.TimestampMicrosecond(),
  ns: new arrow.TimestampNanosecond('Europe/Berlin'),
};

interface ArrowStory {
  readonly unit: TimeUnit;
  /** Whether the field `time` is an integer that counts `unit`; otherwise its column is a timestamp. */
  readonly isNumber: boolean;
  readonly files: readonly {
    readonly rows: readonly Row[];
    readonly batchRows: number;
    readonly isStream: boolean;
  }[];
}

/** Files of rows in no order of time, some without a time. */
const stories: fc.Arbitrary<ArrowStory> = fc
  .record({
    unit: fc.constantFrom<TimeUnit>('s', 'ms', 'us', 'ns'),
    isNumber: fc.boolean(),
    parts: fc.array(
      fc.record({
        part: datasets(40),
        hours: fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 10 }),
        batchRows: fc.integer({ min: 1, max: 30 }),
        isStream: fc.boolean(),
      }),
      { minLength: 1, maxLength: 4 },
    ),
  })
  .map(({ unit, isNumber, parts }) => ({
    unit,
    isNumber,
    files: parts.map(({ part, hours, batchRows, isStream }, file) => ({
      batchRows,
      isStream,
      rows: part.records.map(({ values: [time, ...others] }, i): Row => {
        const moved = time === null ? null : (time as bigint) + BigInt(hours[i % hours.length]! * hourMs);
        const timeMs = moved === null || unit !== 's' ? moved : (moved / 1000n) * 1000n;
        // No two files have the same content, and the column `none` has no values.
        return [timeMs, ...others, null, BigInt(file)];
      }),
    })),
  }));

/** Writes rows with apache-arrow: `method` as a dictionary, and `none` as a column of the type null. */
function write(path: string, { unit, isNumber }: ArrowStory, file: ArrowStory['files'][number]): void {
  const { perMs, ms } = timeUnits[unit];
  const values = (index: number): Value[] => file.rows.map((row) => row[index]!);
  const ticks = values(0).map((time) =>
    time === null ? null : ((time as bigint) * BigInt(perMs)) / BigInt(ms),
  );
  const bools = values(5).map((value) => (value === null ? null : value === 1n));
  const types = [
    new arrow.Int64(),
    new arrow.Float64(),
    new arrow.Dictionary(new arrow.Utf8(), new arrow.Int32(), file.rows.length),
    new arrow.Utf8(),
  ];
  const names = strangeSchema.fields.slice(1, 5).map(({ name }) => name);
  const table = tableOf(
    {
      '@timestamp': { type: new arrow.Int64(), values: ticks },
      ...Object.fromEntries(names.map((name, i) => [name, { type: types[i]!, values: values(i + 1) }])),
      cached: { type: new arrow.Bool(), values: bools },
      none: { type: new arrow.Null(), values: values(6) },
      file: { type: new arrow.Int16(), values: values(7).map(Number) },
    },
    file.batchRows,
  );
  const written = isNumber ? table : withTimestamps(table, timestamps[unit]);
  writeFileSync(path, arrow.tableToIPC(written, file.isStream ? 'stream' : 'file'));
}

/** The table with its first column of integers as timestamps, because apache-arrow converts JavaScript numbers otherwise. */
function withTimestamps(table: arrow.Table, type: arrow.Timestamp): arrow.Table {
  const fields = table.schema.fields.map((field, i) =>
    i === 0 ? new arrow.Field(field.name, type, true) : field,
  );
  const schema = new arrow.Schema(fields);
  const batches = table.batches.map(({ data }) => {
    const [ticks, ...others] = data.children;
    const { length, nullCount, values, nullBitmap } = ticks!;
    const own = arrow.makeData({ type, length, nullCount, data: values, nullBitmap } as never);
    return new arrow.RecordBatch(
      schema,
      arrow.makeData({
        type: new arrow.Struct(fields),
        length: data.length,
        nullCount: 0,
        children: [own, ...others],
      }) as arrow.Data<arrow.Struct>,
    );
  });
  return new arrow.Table(schema, batches);
}

/** The agent whose fields are the columns of the files, or the given list of fields. */
async function definitionOf(folder: string, { unit, isNumber }: ArrowStory): Promise<AgentDefinition> {
  const path = join(folder, 'web.yaml');
  if (!isNumber) {
    const inferred = parseAgentFile(agentFile, path);
    const report = await reportArchive(inferred, inferred.archive!, undefined, undefined, () => {});
    expect([report.problems, report.fieldProblems]).toEqual([[], []]);
    return completedDefinition(inferred, undefined, undefined, undefined, () => {});
  }
  const fields = [
    `{ name: time, type: time, source: '@timestamp', unit: ${unit} }`,
    ...strangeSchema.fields.slice(1).map(({ name, type }) => `{ name: ${name}, type: ${type} }`),
    '{ name: none }',
    '{ name: file, type: int }',
  ];
  return parseAgentFile(`${agentFile}fields: [${fields.join(', ')}]\n`, path);
}

const never = new AbortController().signal;

function attachingOf(definition: AgentDefinition, store: AgentStore): ArchiveAttaching {
  return new ArchiveAttaching({
    definition,
    archive: definition.archive!,
    store,
    dataFolder: undefined,
    log: { info: () => {}, warn: () => {}, error: () => {} },
    now: () => nowMs,
    redefine: () => Promise.reject(new Error('the files have the same columns')),
  });
}

/** The types that the fields of a definition must have to hold the values of a generated row. */
const typesOf = ({ fields }: Schema): string => fields.map(({ type }) => type).join(' ');

describe('attached Arrow files and streams', () => {
  it('have a field for each column, and are answered like the model', async () => {
    const told = stories.chain((story) => {
      const dataset = placed(
        strangeSchema,
        story.files.map(({ rows }) => rows),
        nowMs,
      );
      return fc.record({
        story: fc.constant(story),
        asked: fc.array(queries(dataset), { minLength: 5, maxLength: 10 }),
        indexes: fc.constantFrom('none', 'some', 'all'),
      });
    });
    await fc.assert(
      fc.asyncProperty(told, async ({ story, asked, indexes }) => {
        const folder = mkdtempSync(join(tmpdir(), 'logstrata-arrow-'));
        try {
          story.files.forEach((file, i) => {
            const path = join(folder, `${i}.${file.isStream ? 'arrows' : 'arrow'}`);
            write(path, story, file);
            utimesSync(path, 1_700_000_000 + i, 1_700_000_000 + i);
          });
          const rows = story.files.flatMap((file) => file.rows).length;
          if (rows === 0) return;
          const definition = await definitionOf(folder, story);
          const { schema } = definition;
          expect(typesOf(schema)).toBe('time int float string string bool string int');
          const dataset: Dataset = placed(
            schema,
            story.files.map((file) => file.rows),
            nowMs,
          );
          const directory = new MemoryDirectory();
          let archive = await openOn(directory, () => nowMs);
          let store = await archive.agent('web', schema);
          const round = await attachingOf(definition, store).round(never);
          expect(round).toMatchObject({ rows, waiting: 0, problems: [] });
          const check = async (): Promise<void> => {
            expect(await answer(store, everything)).toBe(answerOf(dataset, everything));
            for (const query of asked) expect(await answer(store, query)).toBe(answerOf(dataset, query));
          };
          await check();
          if (indexes !== 'none') {
            const { problems } = await store.indexAttached(indexes === 'some' ? { filesMax: 1 } : {});
            expect(problems).toEqual([]);
            await check();
          }
          await archive.close();
          archive = await openOn(directory, () => nowMs);
          store = await archive.agent('web', schema);
          await check();
          await archive.close();
        } finally {
          rmSync(folder, { recursive: true });
        }
      }),
      { numRuns: caseCount(20) },
    );
  });

  it('may have empty batches, and compressed batches of several spans whose rows are in no order', async () => {
    const rows = 150_000;
    const day = Date.UTC(2025, 0, 1);
    const times = Array.from({ length: rows }, (_, i) => day + ((i * 7919) % 48) * (hourMs / 2) + (i % 1000));
    const table = tableOf(
      {
        time: { type: new arrow.TimestampMillisecond(), values: times },
        n: { type: new arrow.Int32(), values: times.map((_, i) => i) },
        text: { type: new arrow.Utf8(), values: times.map((_, i) => `line ${i}`) },
      },
      100_000,
    );
    const [large, small] = table.batches;
    const empty = large!.slice(0, 0);
    const batches = [empty, large!, empty, empty, small!, empty];
    const messages = messagesOf(arrow.tableToIPC(new arrow.Table(table.schema, batches), 'stream'));
    expect(messages).toHaveLength(7);
    const zstd = await openCompressor('zstd');
    const folder = mkdtempSync(join(tmpdir(), 'logstrata-arrow-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const schema = makeSchema([
      { name: 'time', type: 'time' },
      { name: 'n', type: 'int' },
      { name: 'text', type: 'string', index: true },
    ]);
    const values = times.map((time, i): Row => [BigInt(time), BigInt(i), `line ${i}`]);
    const expected = placed(schema, [values], nowMs).records.map(({ values: [, n] }) => Number(n));
    for (const isCompressed of [false, true]) {
      const path = join(folder, `${isCompressed}.arrow`);
      const [head, ...others] = messages;
      const compress = (message: ArrowMessage): ArrowMessage =>
        compressedMessage(message, 1, (content) => zstd(content, new Uint8Array(0)));
      writeFileSync(path, fileOf([head!, ...(isCompressed ? others.map(compress) : others)]));
      const archive = await openOn(new MemoryDirectory(), () => nowMs);
      const store = await archive.agent('web', schema);
      const add = { path, format: 'arrow' as const, constants: {} };
      expect((await store.attach({ adds: [add], moves: [], removes: [] })).problems).toEqual([]);
      const numbers = async (query: Partial<Query>): Promise<number[]> =>
        (await answer(store, query))
          .trimEnd()
          .split('\n')
          .map((line) => (JSON.parse(line) as { n: number }).n);
      const text: Query['predicates'] = [{ kind: 'string', field: 2, op: 'like', value: 'NE 14999' }];
      const found = expected.filter((n) => String(n).startsWith('14999'));
      const check = async (): Promise<void> => {
        expect(await numbers({})).toEqual(expected);
        expect(await numbers({ predicates: text })).toEqual(found);
      };
      await check();
      expect((await store.indexAttached()).problems).toEqual([]);
      await check();
      await archive.close();
    }
  });

  it('are attached after a wait if they are streams without an end marker', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'logstrata-arrow-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const table = tableOf({ n: { type: new arrow.Int32(), values: [1, 2, 3, 4] } }, 2);
    const stream = arrow.tableToIPC(table, 'stream');
    const path = join(folder, 'a.arrows');
    const ends = { whole: stream, open: stream.subarray(0, -8) };
    const look = async (content: Uint8Array, ageS: number): Promise<object> => {
      writeFileSync(path, content);
      utimesSync(path, nowMs / 1000 - ageS, nowMs / 1000 - ageS);
      const archive = await openOn(new MemoryDirectory(), () => nowMs);
      const definition = parseAgentFile(
        `${agentFile}fields: [{ name: n, type: int }]`,
        join(folder, 'web.yaml'),
      );
      const store = await archive.agent('web', definition.schema);
      const { rows, waiting, problems } = await attachingOf(definition, store).round(never);
      await archive.close();
      return { rows, waiting, problems };
    };
    expect(await look(ends.whole, 0)).toEqual({ rows: 4, waiting: 0, problems: [] });
    expect(await look(ends.open, 59)).toEqual({ rows: 0, waiting: 1, problems: [] });
    expect(await look(ends.open, 61)).toEqual({ rows: 4, waiting: 0, problems: [] });
  });
});

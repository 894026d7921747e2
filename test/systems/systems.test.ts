import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { copyFile, mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readAgentFile } from '../../agents/definition/agent-file.js';
import { loadFiles } from '../../agents/load/load.js';
import { loadStream } from '../../agents/load/load-stream.js';
import type { AgentStore } from '../../engine/archive/agent-store.js';
import { openArchive } from '../../engine/index.js';
import type { NeedleOp } from '../../engine/scan/query.js';
import { answer } from '../engine/store/memory-archive.js';
import { readCsv } from './csv.js';
import { describeUnless } from '../needs.js';

/** Real logs of four systems (Loghub's samples), each with a CSV of its values; they are next to the checkout. */
const logs = join(import.meta.dirname, '../../../shared/logs');

const nowMs = Date.UTC(2026, 10, 21, 12);
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

type Row = Record<string, string>;
type StoredRow = Record<string, string | number | null>;

interface System {
  readonly agent: string;
  readonly name: string;
  /** The column of the CSV for each field. The columns with message labels and line numbers are in no line. */
  readonly fields: Readonly<Record<string, string>>;
  /** The instant of a row. */
  readonly timeMs: (row: Row) => number;
}

const labels = ['LineId', 'EventId', 'EventTemplate'];

const systems: readonly System[] = [
  {
    agent: 'apache',
    name: 'Apache',
    fields: { stamp: 'Time', level: 'Level', content: 'Content' },
    timeMs: (row) => Date.parse(`${row.Time} UTC`),
  },
  {
    agent: 'hdfs',
    name: 'HDFS',
    fields: {
      date: 'Date',
      clock: 'Time',
      pid: 'Pid',
      level: 'Level',
      component: 'Component',
      content: 'Content',
    },
    timeMs: (row) => {
      const [year, month, day] = pairs(row.Date!);
      const [hours, minutes, seconds] = pairs(row.Time!);
      return Date.UTC(2000 + year!, month! - 1, day, hours, minutes, seconds);
    },
  },
  {
    agent: 'linux',
    name: 'Linux',
    fields: {
      month: 'Month',
      day: 'Date',
      clock: 'Time',
      host: 'Level',
      component: 'Component',
      pid: 'PID',
      content: 'Content',
    },
    timeMs: (row) => latest(row.Month!, row.Date!, row.Time!),
  },
  {
    agent: 'openssh',
    name: 'OpenSSH',
    fields: { month: 'Date', day: 'Day', clock: 'Time', host: 'Component', pid: 'Pid', content: 'Content' },
    timeMs: (row) => latest(row.Date!, row.Day!, row.Time!),
  },
];

function pairs(digits: string): number[] {
  return digits.match(/\d\d/g)!.map(Number);
}

/** The last time before now at which a clock showed this. */
function latest(month: string, day: string, clock: string): number {
  const [hours, minutes, seconds] = clock.split(':').map(Number);
  const inYear = (year: number): number =>
    Date.UTC(year, months.indexOf(month), Number(day), hours, minutes, seconds);
  return inYear(2026) <= nowMs ? inYear(2026) : inYear(2025);
}

/** The expected value of a record for a row: text for a string field, a number for a numeric one, null for an empty cell. */
function expectedOf(system: System, store: AgentStore, row: Row): StoredRow {
  const values = store.schema.fields.map(({ name, type }): [string, string | number | null] => {
    if (name === 'time') return ['time', system.timeMs(row)];
    const text = row[system.fields[name]!]!;
    if (type !== 'int') return [name, text];
    expect(text).toMatch(/^(\d+|)$/);
    return [name, text === '' ? null : Number(text)];
  });
  return Object.fromEntries(values);
}

async function storedRows(store: AgentStore, query: Parameters<typeof answer>[1] = {}): Promise<StoredRow[]> {
  const text = await answer(store, { after: { partition: 0, ordinal: 0 }, ...query });
  return text
    .trimEnd()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const { _cursor, ...row } = JSON.parse(line) as StoredRow;
      expect(_cursor).toMatch(/^[0-9a-f]{16}$/);
      return row;
    });
}

/** The answers to filters on each string field must be the matching rows, in the order of the records. */
async function checkFilters(store: AgentStore, stored: readonly StoredRow[]): Promise<void> {
  const holds: Record<NeedleOp, (value: string, part: string) => boolean> = {
    exact: (value, part) => value === part,
    like: (value, part) => value.toLowerCase().includes(part.toLowerCase()),
    prefix: (value, part) => value.toLowerCase().startsWith(part.toLowerCase()),
    suffix: (value, part) => value.toLowerCase().endsWith(part.toLowerCase()),
  };
  for (const [field, { name, type }] of store.schema.fields.entries()) {
    if (type !== 'string') continue;
    for (const at of [0, 700, 1999]) {
      const whole = String(stored[at]![name]);
      const parts: [NeedleOp, string][] = [
        ['exact', whole],
        ['like', whole.slice(2, 9).toUpperCase()],
        ['prefix', whole.slice(0, 6).toLowerCase()],
        ['suffix', whole.slice(-6).toUpperCase()],
      ];
      for (const [op, value] of parts) {
        const found = await storedRows(store, { predicates: [{ kind: 'string', field, op, value }] });
        expect(found.length).toBeGreaterThan(0);
        expect(found).toEqual(stored.filter((row) => holds[op](String(row[name]), value)));
      }
    }
  }
}

const missingLogs = existsSync(logs) ? null : 'the logs are not beside the checkout';

for (const system of systems)
  describeUnless(missingLogs, system.name, () => {
    const definition = readAgentFile(join(import.meta.dirname, `${system.agent}.yaml`));
    const log = join(logs, system.name, `${system.name}_2k.log`);

    async function openStore(): Promise<AgentStore> {
      const folder = await mkdtemp(join(tmpdir(), 'logstrata-systems-'));
      const archive = await openArchive(folder, { mode: 'write', role: 'load', now: () => nowMs });
      onTestFinished(async () => {
        await archive.close();
        await rm(folder, { recursive: true, force: true });
      });
      return archive.agent(definition.name, definition.schema);
    }

    /** Every field of every line, against all columns of the CSV. */
    async function check(store: AgentStore): Promise<void> {
      const rows = readCsv(readFileSync(`${log}_structured.csv`, 'utf8'));
      expect(rows).toHaveLength(2000);
      expect([...Object.values(system.fields), ...labels].sort()).toEqual(Object.keys(rows[0]!).sort());
      const names = store.schema.fields.map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(Object.keys(system.fields)));
      const stored = await storedRows(store);
      const expected = rows.map((row) => expectedOf(system, store, row));
      // One commit places its records by time, and those of equal times in the order of the lines.
      expected.sort((a, b) => Number(a.time) - Number(b.time));
      expect(stored).toEqual(expected);
      await checkFilters(store, stored);
    }

    const settings = { definition, timezone: 'UTC', now: () => nowMs };

    it('is stored with the values of its CSV when it is loaded as a file', async () => {
      const store = await openStore();
      const folder = await mkdtemp(join(tmpdir(), 'logstrata-systems-'));
      onTestFinished(() => rm(folder, { recursive: true, force: true }));
      // Times without a year count back from the file's last modification.
      const copy = join(folder, `${system.name}_2k.log`);
      await copyFile(log, copy);
      await utimes(copy, nowMs / 1000, nowMs / 1000);
      const summary = await loadFiles({ ...settings, store, files: [copy] });
      expect(summary).toMatchObject({ records: 2000, rejected: 0, unreadableValues: 0, exitCode: 0 });
      expect(await store.stats()).toMatchObject({ records: 2000, hotRecords: 0 });
      await check(store);
      expect((await store.verify()).damages).toEqual([]);
    });

    it('is stored with the values of its CSV when it is read as a stream, hot and then sealed', async () => {
      const store = await openStore();
      const summary = await loadStream({ ...settings, store, input: createReadStream(log) });
      expect(summary).toMatchObject({ records: 2000, rejected: 0, unreadableValues: 0, exitCode: 0 });
      expect(await store.stats()).toMatchObject({ records: 2000, hotRecords: 2000 });
      await check(store);
      await store.compact();
      expect(await store.stats()).toMatchObject({ records: 2000, hotRecords: 0 });
      await check(store);
    });
  });

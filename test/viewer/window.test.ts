import { expect, it } from 'vitest';
import { caseCount, fc } from '../cases.js';
import { FailureError, failureOf } from '../../server/viewer/state/failure.js';
import { pageRecords, type PageAsk } from '../../server/viewer/state/first-requests.js';
import type { PageAnswer } from '../../server/viewer/state/record-stream.js';
import { readRecordLine, type LogRecord } from '../../server/viewer/state/record.js';
import {
  RecordWindow,
  type AskForPage,
  recordsIn,
  windowCharsMax,
  windowRecordsMax,
  type WindowState,
} from '../../server/viewer/state/record-window.js';

/** Records as in an archive: cursors with gaps, and times that are often equal. */
function recordOf(n: number, chars = 0): LogRecord {
  const cursor = (n * 3 + 0x100).toString(16).padStart(16, '0');
  const text = chars === 0 ? '' : 'x'.repeat(chars);
  return readRecordLine(`{"_cursor":"${cursor}","time":${Math.floor(n / 50)},"message":"${text}"}`);
}

/** The route, for records in memory. */
class Archive {
  readonly records: LogRecord[];
  asked = 0;
  isBroken = false;

  constructor(count: number, chars = 0) {
    this.records = Array.from({ length: count }, (_, n) => recordOf(n, chars));
  }

  add(count: number): LogRecord[] {
    const added = Array.from({ length: count }, (_, i) => recordOf(this.records.length + i));
    this.records.push(...added);
    return added;
  }

  readonly ask: AskForPage = (ask) => {
    this.asked += 1;
    if (this.isBroken) return Promise.reject(new FailureError(failureOf('unreachable', 'gone')));
    return Promise.resolve(this.page(ask));
  };

  private page({ after, before, limit }: PageAsk): PageAnswer {
    const inside = this.records.filter(
      ({ cursor }) => (after === undefined || cursor > after) && (before === undefined || cursor < before),
    );
    const records = after === undefined ? inside.slice(-limit) : inside.slice(0, limit);
    return { records, isEnd: records.length < limit, timing: '' };
  }
}

/** The place of the window in the archive; fails unless it shows a run without gaps or repetitions. */
function runOf(state: WindowState, archive: Archive): { first: number; count: number } {
  const shown = recordsIn(state).map(({ cursor }) => cursor);
  const first = archive.records.findIndex(({ cursor }) => cursor === shown[0]);
  const expected = archive.records.slice(first, first + shown.length).map(({ cursor }) => cursor);
  expect(shown).toEqual(shown.length === 0 ? [] : expected);
  expect(shown.length).toBeLessThanOrEqual(windowRecordsMax);
  return { first, count: shown.length };
}

const step = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ kind: 'older' as const }) },
  { weight: 6, arbitrary: fc.constant({ kind: 'newer' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'newest' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'oldest' as const }) },
  { weight: 2, arbitrary: fc.nat(2999).map((n) => ({ kind: 'around' as const, n })) },
  { weight: 1, arbitrary: fc.nat(2999).map((n) => ({ kind: 'from' as const, n })) },
  {
    weight: 4,
    arbitrary: fc.tuple(fc.integer({ min: 1, max: 250 }), fc.boolean()).map(([count, isShown]) => ({
      kind: 'stream' as const,
      count,
      isShown,
    })),
  },
  { weight: 1, arbitrary: fc.boolean().map((isBroken) => ({ kind: 'break' as const, isBroken })) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

async function take(window: RecordWindow, archive: Archive, one: Step): Promise<void> {
  const cursorAt = (n: number): string => recordOf(n).cursor;
  switch (one.kind) {
    case 'older':
    case 'newer':
      return window.extend(one.kind);
    case 'newest':
      return window.openNewest();
    case 'oldest':
      return window.openOldest();
    case 'around':
      return window.openAround(cursorAt(one.n));
    case 'from':
      return window.openFrom(cursorAt(one.n));
    case 'stream':
      window.take(archive.add(one.count), one.isShown);
      return undefined;
    case 'break':
      archive.isBroken = one.isBroken;
  }
}

it('shows a run of records without gaps or repetitions, wherever the user scrolls and whatever is added', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 3000 }),
      fc.array(step, { maxLength: 60 }),
      async (count, steps) => {
        const archive = new Archive(count);
        const window = new RecordWindow();
        window.reset(archive.ask);
        await window.openNewest();
        for (const one of steps) {
          await take(window, archive, one);
          const state = window.state.value;
          const { first, count: shown } = runOf(state, archive);
          if (state.status !== 'ready') continue;
          if (state.older.kind === 'end' && shown > 0) expect(first).toBe(0);
          if (state.newer.kind === 'end' && shown > 0) expect(first + shown).toBe(archive.records.length);
        }
      },
    ),
    { numRuns: caseCount(60) },
  );
});

it('scrolls back over all of an archive, and forward again', async () => {
  const archive = new Archive(5000);
  const window = new RecordWindow();
  window.reset(archive.ask);
  await window.openNewest();
  const seen = new Set<string>();
  const look = (): void => recordsIn(window.state.value).forEach(({ cursor }) => seen.add(cursor));
  for (look(); window.state.value.older.kind === 'more'; look()) await window.extend('older');
  expect(seen.size).toBe(5000);
  expect(archive.asked).toBe(5000 / pageRecords + 1);
  seen.clear();
  for (look(); window.state.value.newer.kind === 'more'; look()) await window.extend('newer');
  expect(seen.size).toBe(5000);
});

it('holds fewer records if they are large', async () => {
  const archive = new Archive(30, 2_000_000);
  const window = new RecordWindow();
  window.reset(async (ask, signal) =>
    archive
      .ask({ ...ask, limit: Math.min(ask.limit, 2) }, signal)
      .then((answer) => ({ ...answer, isEnd: false })),
  );
  await window.openNewest();
  for (let i = 0; i < 14; i += 1) await window.extend('older');
  const chars = recordsIn(window.state.value).reduce((sum, { line }) => sum + line.length, 0);
  expect(chars).toBeLessThan(windowCharsMax + 4_100_000);
  expect(window.state.value.newer.kind).toBe('more');
});

it('keeps its records when a page fails, and continues when it is requested again', async () => {
  const archive = new Archive(500);
  const window = new RecordWindow();
  window.reset(archive.ask);
  await window.openNewest();
  archive.isBroken = true;
  await window.extend('older');
  expect(window.state.value.older).toMatchObject({ kind: 'failed', failure: { kind: 'unreachable' } });
  expect(recordsIn(window.state.value)).toHaveLength(pageRecords);
  archive.isBroken = false;
  await window.extend('older');
  expect(recordsIn(window.state.value)).toHaveLength(2 * pageRecords);
});

it('ignores the answer to an outdated request', async () => {
  const slow = new Archive(10);
  const window = new RecordWindow();
  let answer: (() => void) | undefined;
  window.reset((ask, signal) => new Promise((resolve) => (answer = () => resolve(slow.ask(ask, signal)))));
  const opened = window.openNewest();
  const archive = new Archive(3);
  window.reset(archive.ask);
  await window.openNewest();
  answer?.();
  await opened;
  expect(recordsIn(window.state.value)).toHaveLength(3);
});

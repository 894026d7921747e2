import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DamageError } from '../../engine/core/errors.js';
import { executeScan } from '../../engine/scan/answer.js';
import type { Query, ScanStats } from '../../engine/scan/query.js';
import { BufferPool } from '../../engine/store/reading/buffer-pool.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import type { FileFilters, FilterRequest } from '../../engine/store/reading/filter-request.js';
import type { RowGroup } from '../../engine/store/reading/snapshot.js';
import type { JobQueue } from '../../engine/workers/job-queue.js';
import { WorkerPool } from '../../engine/workers/worker-pool.js';
import { answerOf } from '../model/answer.js';
import { numbered } from './numbered.js';
import { storeSnapshot, type StoredSnapshot } from './stored-snapshot.js';

/** A pool that counts the jobs it is given. */
class CountingPool extends WorkerPool {
  jobs = 0;

  override announce(queue: JobQueue): void {
    this.jobs++;
    super.announce(queue);
  }
}

/** 200 row groups in four segments, in alternating stretches. */
const dataset = numbered(20_000);
const layout = { segments: 4, stretch: 250, rowGroupRows: 100, hotRecords: 0, codec: 'lz4' } as const;
const rowGroups = 200;
const folder = mkdtempSync(join(tmpdir(), 'logstrata-asked-'));
const columns = new BufferPool(1 << 27);
const workers = new CountingPool(2);
let stored: StoredSnapshot;

beforeAll(async () => {
  const directory = await openRealDirectory(folder);
  stored = await storeSnapshot(directory, 'asked', dataset, layout, columns);
});
afterAll(async () => {
  await workers.close();
  columns.close();
  rmSync(folder, { recursive: true });
});

interface Answer {
  readonly text: string;
  readonly stats: ScanStats;
  /** How often the filters of each row group were asked. */
  readonly asked: ReadonlyMap<string, number>;
  readonly opened: ReadonlySet<RowGroup>;
  readonly jobs: number;
}

/** Runs a query on the stored rows. `onAsk` is called when filters are asked, and may answer in their place. */
async function run(
  query: Query,
  onAsk: (file: string, ask: FilterRequest) => Promise<void> | undefined = () => undefined,
): Promise<Answer> {
  const asked = new Map<string, number>();
  const opened = new Set<RowGroup>();
  const filtersOf = new Map<FileFilters, FileFilters>();
  const watchedFilters = ({ filters, file }: RowGroup): FileFilters => {
    let watched = filtersOf.get(filters);
    if (watched !== undefined) return watched;
    watched = {
      rowGroups: filters.rowGroups,
      ask: (ask) => {
        for (const index of ask.rowGroups) {
          const key = `${file} ${index}`;
          asked.set(key, (asked.get(key) ?? 0) + 1);
        }
        return onAsk(file, ask) ?? filters.ask(ask);
      },
    };
    filtersOf.set(filters, watched);
    return watched;
  };
  const known = new Map<RowGroup, RowGroup>();
  const watched = (rowGroup: RowGroup): RowGroup => ({
    ...rowGroup,
    filters: watchedFilters(rowGroup),
    opened: () => null,
    open: (threads, counters) => {
      opened.add(rowGroup);
      return rowGroup.open(threads, counters);
    },
  });
  const runs = [...stored.runs].map((each) => {
    const rowGroup = known.get(each.rowGroup) ?? watched(each.rowGroup);
    known.set(each.rowGroup, rowGroup);
    return { ...each, rowGroup };
  });
  const before = workers.jobs;
  const { lines, stats } = executeScan({ ...stored, runs }, query, { workers });
  const pieces: Uint8Array[] = [];
  for await (const piece of lines) pieces.push(piece.slice());
  return { text: Buffer.concat(pieces).toString('utf8'), stats, asked, opened, jobs: workers.jobs - before };
}

const exact = (value: string) => ({ kind: 'string', field: 2, op: 'exact', value }) as const;
const like = (value: string) => ({ kind: 'string', field: 2, op: 'like', value }) as const;

describe('the filters of row groups', () => {
  it.each([
    // 1 row group, then the rest: one job for each of two threads.
    ['an absent value', [exact('request 77 of nobody')], 'rowGroupsPrunedByValue', 1 + 2],
    // 1 row group, then 8, 72 and the rest.
    ['an absent text', [like('which xyz wrote')], 'rowGroupsPrunedByGram', 1 + 1 + 2 + 2],
  ] as const)(
    'are asked for %s in a few jobs, and what they rule out is not opened',
    async (_, predicates, counted, jobsMax) => {
      const { text, stats, asked, opened, jobs } = await run({ limit: 10, predicates });
      expect(text).toBe('');
      expect(stats[counted]).toBe(rowGroups);
      expect(stats.rowGroups).toBe(rowGroups);
      expect(opened.size).toBe(0);
      expect(asked.size).toBe(rowGroups);
      expect(Math.max(...asked.values())).toBe(1);
      expect(jobs).toBeLessThanOrEqual(jobsMax);
    },
  );

  it('are asked for one row group if that fills the page, and not far ahead if a few row groups do', async () => {
    const newest = await run({ limit: 100, predicates: [like('done')] });
    expect(newest.text.split('\n')).toHaveLength(101);
    expect(newest.asked.size).toBe(1);
    const few = await run({ limit: 700, predicates: [like('done')] });
    expect(few.text).toBe(answerOf(dataset, { limit: 700, predicates: [like('done')] }));
    expect(few.asked.size).toBeLessThanOrEqual(1 + 8 + 8 * 9);
    expect(few.opened.size).toBeLessThanOrEqual(2 * 8);
  });

  it('are asked ever farther ahead, in proportion to the row groups already passed', async () => {
    const wanted = like('is no. 19500 done');
    const { text, asked, opened } = await run({ limit: 1, predicates: [wanted] });
    expect(text).toBe(answerOf(dataset, { limit: 1, predicates: [wanted] }));
    // The row is in the second round; the third round is started while the second is searched.
    expect(asked.size).toBeLessThanOrEqual(1 + 8 + 72);
    expect(opened.size).toBeLessThanOrEqual(3);
  });

  it('fail the queries that need them, and no others', async () => {
    // The newest 500 rows are in the other two segments.
    const fails = (file: string, { rowGroups: some, rulings }: FilterRequest): Promise<void> | undefined => {
      if (!/-[01]\.parquet$/.test(file)) return undefined;
      rulings.fail(some, new DamageError('the disk is gone', { path: file, offset: 0 }));
      return Promise.resolve();
    };
    const page = { limit: 500, predicates: [like('done')] };
    expect((await run(page, fails)).text).toBe(answerOf(dataset, page));
    const more = { limit: 501, predicates: [like('done')] };
    await expect(run(more, fails)).rejects.toMatchObject({ code: 'damaged' });
  });

  it('give the answer of the model, whichever row groups they rule out', async () => {
    for (const limit of [1, 3, 50, 20_000]) {
      for (const text of ['no. 1', '999', '7 done', 'of 10.0.0.13 is', 'no. 7777 ']) {
        for (const after of [undefined, { partition: 482136, ordinal: 4321 }]) {
          const query = { limit, after, predicates: [like(text)] };
          expect((await run(query)).text === answerOf(dataset, query), JSON.stringify(query)).toBe(true);
        }
      }
    }
  });
});

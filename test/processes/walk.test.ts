import { expect, it } from 'vitest';
import { isLong } from '../cases.js';
import { start, run } from '../cli/process.js';
import {
  allNumbers,
  numberLines,
  numbersFolder,
  range,
  serveNumbers,
  until,
  writeNumbers,
  type Numbered,
  type Served,
} from './numbered-log.js';

const there = 20_000;
const filesLoaded = isLong ? 20 : 2;
const recordsPerFile = 5000;
const recordsStreamed = 70_000;

interface Walk {
  readonly direction: 'after' | 'before';
  readonly limit: number;
  readonly filter: string;
  readonly matches: (n: number) => boolean;
}

const walks: readonly Walk[] = [
  { direction: 'after', limit: 1000, filter: '', matches: () => true },
  { direction: 'before', limit: 1777, filter: '', matches: () => true },
  { direction: 'after', limit: 500, filter: '&source__exact=there&n__lt=4000', matches: (n) => n < 4000 },
  { direction: 'before', limit: 333, filter: '&n__gte=15000', matches: (n) => n >= 15_000 },
];

/** All pages, followed by rules 3 and 4 of the interface. */
async function walk(served: Served, { direction, limit, filter }: Walk): Promise<Numbered[]> {
  const seen: Numbered[] = [];
  let at = direction === 'after' ? '&after=0000000000000000' : '';
  for (;;) {
    const page = await served.ask(`limit=${limit}${at}${filter}`);
    if (page.length === 0) return seen;
    const cursors = page.map(({ cursor }) => cursor);
    expect(cursors).toEqual([...cursors].sort());
    seen.push(...page);
    at = direction === 'after' ? `&after=${cursors.at(-1)!}` : `&before=${cursors[0]!}`;
  }
}

function check(seen: readonly Numbered[], { direction, matches }: Walk): void {
  const cursors = seen.map(({ cursor }) => cursor);
  expect(new Set(cursors).size).toBe(cursors.length);
  const numbers = seen.map(({ n }) => n);
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(numbers.filter((n) => n < there).sort((a, b) => a - b)).toEqual(range(0, there).filter(matches));
  if (direction === 'after') expect(cursors).toEqual([...cursors].sort());
}

it('page walks over HTTP return each record that was stored before exactly once, while files and a stream are loaded', async () => {
  const folder = numbersFolder();
  await run(folder, ['load', 'numbers', writeNumbers(folder, 'there', 0, there)]);
  const served = await serveNumbers(folder);

  let next = there;
  const files = Array.from({ length: filesLoaded }, (_, i) => {
    const path = writeNumbers(folder, `${i}.log`, next, next + recordsPerFile);
    next += recordsPerFile;
    return path;
  });
  const stream = start(folder, ['load', 'numbers', '-']);
  let loading = true;
  let walked = 0;
  const loads = (async () => {
    for (const file of files) {
      expect((await run(folder, ['load', 'numbers', file])).code).toBe(0);
      stream.child.stdin.write(numberLines(next, next + recordsStreamed / filesLoaded, 'stream'));
      next += recordsStreamed / filesLoaded;
    }
    // However busy the machine is, each kind of walk is made once before everything is stored.
    await until(() => walked >= walks.length, 'each walk was made');
    stream.child.stdin.end();
    expect((await stream.finished).code).toBe(0);
    expect((await run(folder, ['compact', 'numbers'])).code).toBe(0);
  })().finally(() => (loading = false));

  loads.catch(() => undefined);
  for (; loading; walked++) {
    const each = walks[walked % walks.length]!;
    check(await walk(served, each), each);
  }
  await loads;
  for (const each of walks) check(await walk(served, each), each);
  expect(await allNumbers(served)).toEqual(range(0, next));
});

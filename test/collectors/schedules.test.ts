import { expect, it } from 'vitest';
import { caseCount, fc, seed } from '../cases.js';
import { temporaryFolder } from '../agents/load/temporary.js';
import { FollowedFolder, lineOf, multiline, recordOf, type FollowOptions } from './followed-folder.js';
import { LogWriter, type Step } from './log-writer.js';

const runs = caseCount(30, 10_000);

const name = fc.constantFrom('web', 'db');

const packer = fc.constantFrom('gzip' as const, 'zstd' as const, 'copy' as const);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('write' as const),
      name,
      lines: fc.integer({ min: 1, max: 30 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('partial' as const), name }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('collect' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('rename' as const),
      name,
      late: fc.integer({ min: 0, max: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('copy' as const), name }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('gzip' as const), name }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('pack' as const),
      name,
      by: packer,
      late: fc.integer({ min: 0, max: 3 }),
      seen: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('repack' as const), name, by: packer, over: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('replace' as const),
      name,
      added: fc.integer({ min: 0, max: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('trim' as const),
      name,
      added: fc.integer({ min: 0, max: 3 }),
      inPlace: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('rotateTarget' as const),
      times: fc.integer({ min: 1, max: 3 }),
      packed: fc.boolean(),
      isDown: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('recreate' as const), name }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), name }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('restart' as const), crash: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('load' as const), name }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), seconds: fc.constantFrom(1, 3, 30, 90) }),
  },
);

/** Actions of programs that leave rotation to Logstrata. */
const ours = new Set<Step['kind']>(['write', 'partial', 'collect', 'restart', 'load', 'pass']);

/** The line of record `n`, with a time before that of all records with lower numbers. */
const backwards = (n: number): string => lineOf(n).replace(/^\S+/, lineOf(86_400 - n).slice(0, 20));

/** Takes random steps, and compares every record with the written lines. */
async function takeSchedules(
  options: FollowOptions,
  textOf: (n: number) => string,
  numRuns: number,
  isTaken: (step: Step) => boolean,
  banner = '',
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const followed = new FollowedFolder(await temporaryFolder(), options);
      try {
        await followed.start();
        // From here on the agent is followed: logs that are rotated later are read.
        await followed.collect();
        const writer = new LogWriter(followed, textOf, banner);
        for (const each of steps) if (isTaken(each)) await writer.take(each);
        await writer.finish();
        const stored = (await followed.records()).sort((a, b) => a.n - b.n);
        expect(stored.map(({ n }) => n)).toEqual(writer.written);
        for (const { n, text } of stored) expect(textOf(n).endsWith(` ${n} ${text}`)).toBe(true);
      } finally {
        await followed.stop();
      }
    }),
    { numRuns, seed, endOnFailure: false },
  );
}

/** Actions on a log that a link leads to, whose target is rotated. */
const linked = new Set<Step['kind']>([...ours, 'rotateTarget']);

const onFiles = ({ kind }: Step): boolean => kind !== 'rotateTarget';

/** The same without what only times show: which line of a log without its beginning was stored last. */
const untrimmed = (step: Step): boolean => onFiles(step) && step.kind !== 'trim';

it(`stores each line once, whatever happens to the files (seed ${seed})`, () =>
  takeSchedules({}, lineOf, runs, onFiles));

it(`stores each record of several lines once and completely (seed ${seed})`, () =>
  takeSchedules({ file: { multiline } }, recordOf, Math.ceil(runs / 2), onFiles));

it(`stores each line once if all logs begin alike and no time is later than the ones before (seed ${seed})`, () =>
  takeSchedules({}, backwards, Math.ceil(runs / 2), untrimmed, `${'='.repeat(1100)}\n`));

it(`stores each line once of a log that a link leads to (seed ${seed})`, () =>
  takeSchedules({ startMs: Date.UTC(2020, 0, 1) }, lineOf, Math.ceil(runs / 2), ({ kind }) =>
    linked.has(kind),
  ));

it.each(['truncate', 'rename'] as const)(
  `stores each line once while Logstrata rotates the logs: %s (seed ${seed})`,
  async (method) => {
    for (const sizeBytes of [1, 300, 2000])
      await takeSchedules({ rotate: { method, sizeBytes } }, lineOf, Math.ceil(runs / 6), ({ kind }) =>
        ours.has(kind),
      );
  },
);

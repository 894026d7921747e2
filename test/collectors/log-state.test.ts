import { describe, expect, it } from 'vitest';
import type { CompressedSource } from '../../agents/collect/logs/compressed-source.js';
import {
  firstState,
  isDue,
  lagBytes,
  next,
  restSinceMs,
  type FollowedContent,
  type LogContent,
  type LogState,
  type Observation,
  type Step,
} from '../../agents/collect/logs/log-state.js';
import { beginning } from '../../agents/sources/source-position.js';

const name = { name: 'web.log', base: 'web.log', direct: true, captures: new Map<string, string>() };
const rotatedName = { ...name, name: 'web.log.1', direct: false };
const status = { inode: '7', sizeBytes: 100, modifiedMs: 5000, bornMs: null, isFile: true, links: 1 };
const sighting = { path: '/logs/web.log', name, status, target: null };

const begun = Buffer.from('some');
const at60 = { ...beginning, offset: 60, head: begun };
const followed: FollowedContent = {
  kind: 'follow',
  position: at60,
  asOf: 3,
  begun,
  seenBytes: 100,
  provenBytes: 90,
  rest: null,
  searchedTo: 0,
};
const rest = { bytes: 8, sinceMs: 1500, endsInLine: true };
// The state does not depend on the source.
const source = { position: at60 } as unknown as CompressedSource;
const packed: LogContent = { kind: 'packed', position: at60, asOf: 3, begun, source };

/** A file first seen at 1000, with everything about it known. */
function log(content: LogContent, changes: Partial<LogState> = {}): LogState {
  return { ...firstState(sighting, 1000, false), mayHaveMore: false, content, ...changes };
}

const quiet = (kind: 'new' | 'waiting' | 'done' | 'history'): LogState => log({ kind });
const seen = (changes: Partial<typeof status> = {}, place = sighting): Observation => ({
  ...place,
  kind: 'seen',
  status: { ...status, ...changes },
  nowMs: 2000,
});
const identified = (identity: Extract<Observation, { kind: 'identified' }>['identity']): Observation => ({
  kind: 'identified',
  identity,
  asOf: 9,
});

/** The part of the state that an observation changes, and the source that it closes. */
type Change = Partial<Omit<LogState, 'content'>> & { content?: Partial<LogContent> };
type Row = readonly [what: string, state: LogState, observation: Observation, change: Change, closes?: true];

const rows: readonly Row[] = [
  ['is unchanged', log(followed), seen(), {}],
  [
    'has grown',
    log(followed),
    seen({ sizeBytes: 140 }),
    {
      status: { ...status, sizeBytes: 140 },
      unchangedSinceMs: 2000,
      mayHaveMore: true,
      content: { seenBytes: 140 },
    },
  ],
  [
    'has shrunk',
    log(followed),
    seen({ sizeBytes: 20 }),
    { status: { ...status, sizeBytes: 20 }, unchangedSinceMs: 2000, mayHaveMore: true },
  ],
  [
    'was renamed',
    log({ ...followed, rest }),
    seen({}, { ...sighting, path: '/logs/web.log.1', name: rotatedName }),
    { path: '/logs/web.log.1', name: rotatedName, movedMs: 2000, mayHaveMore: true },
  ],
  [
    'has its name back',
    log(followed, { goneSinceMs: 1800 }),
    seen(),
    { goneSinceMs: null, mayHaveMore: true },
  ],
  ['was finished, and is unchanged', quiet('done'), seen(), {}],
  [
    'was finished, and was rewritten',
    quiet('done'),
    seen({ modifiedMs: 6000 }),
    {
      status: { ...status, modifiedMs: 6000 },
      unchangedSinceMs: 2000,
      mayHaveMore: true,
      content: { kind: 'new' },
    },
  ],
  [
    'was ignored as an old generation, and reappeared',
    log({ kind: 'history' }, { goneSinceMs: 1800 }),
    seen(),
    { goneSinceMs: null, mayHaveMore: true, content: { kind: 'new' } },
  ],
  [
    'is measured',
    quiet('new'),
    { kind: 'measured', status: { ...status, sizeBytes: 7 } },
    {
      status: { ...status, sizeBytes: 7 },
    },
  ],
  ['waits, and the folder was checked', quiet('waiting'), { kind: 'surveyed' }, { mayHaveMore: true }],
  [
    'waits because it is empty, and the folder was checked',
    log({ kind: 'waiting' }, { status: { ...status, sizeBytes: 0 } }),
    { kind: 'surveyed' },
    {},
  ],
  ['is followed, and the folder was checked', log(followed), { kind: 'surveyed' }, {}],
  ['lost its name', log(followed), { kind: 'missed', nowMs: 2000 }, { goneSinceMs: 2000, mayHaveMore: true }],
  [
    'still has no name',
    log(followed, { goneSinceMs: 1800 }),
    { kind: 'missed', nowMs: 2000 },
    { mayHaveMore: true },
  ],
  [
    'is identified as a log to follow',
    quiet('new'),
    identified({ kind: 'follow', position: at60, known: null, head: begun }),
    { mayHaveMore: true, content: { ...followed, asOf: 9, provenBytes: 100 } },
  ],
  [
    'is identified as a log to follow after its present end, as content that is still being written may be',
    log({ kind: 'new' }, { status: { ...status, sizeBytes: 10 } }),
    identified({ kind: 'follow', position: at60, known: null, head: begun }),
    { mayHaveMore: true, content: { ...followed, asOf: 9, seenBytes: 60, provenBytes: 60 } },
  ],
  [
    'is identified as compressed',
    quiet('new'),
    identified({ kind: 'packed', source, head: begun }),
    { mayHaveMore: true, content: { ...packed, asOf: 9 } },
  ],
  [
    'cannot be identified yet',
    log({ kind: 'new' }, { mayHaveMore: true }),
    identified({ kind: 'waiting' }),
    { mayHaveMore: false, content: { kind: 'waiting' } },
  ],
  [
    'is identified as a copy of stored content',
    quiet('waiting'),
    identified({ kind: 'done' }),
    { content: { kind: 'done' } },
  ],
  [
    'is read to its end',
    log(followed),
    { kind: 'read', reachedBytes: 95, isEnd: true, begun: null },
    { content: { seenBytes: 95, provenBytes: 95 } },
  ],
  [
    'is read in part, and its known beginning becomes longer',
    log(followed),
    { kind: 'read', reachedBytes: 80, isEnd: false, begun: Buffer.from('some text') },
    { content: { seenBytes: 100, provenBytes: 100, begun: Buffer.from('some text') } },
  ],
  [
    'ends inside a line',
    log(followed),
    { kind: 'ended', restBytes: 8, endsInLine: true, nowMs: 1500 },
    { content: { rest } },
  ],
  [
    'ends inside the same line as before',
    log({ ...followed, rest }),
    { kind: 'ended', restBytes: 8, endsInLine: true, nowMs: 2000 },
    {},
  ],
  [
    'ends with a whole line now',
    log({ ...followed, rest }),
    { kind: 'ended', restBytes: 0, endsInLine: true, nowMs: 2000 },
    { content: { rest: null } },
  ],
  [
    'has a long line that was searched for its end',
    log(followed),
    { kind: 'searched', searchedTo: 5000 },
    { content: { seenBytes: 5000, searchedTo: 5000 } },
  ],
  [
    'gave whole lines',
    log({ ...followed, rest, searchedTo: 5000 }),
    { kind: 'gathered' },
    { content: { rest: null, searchedTo: 0 } },
  ],
  [
    'gave lines, and the frame is full',
    log(followed),
    { kind: 'turned', mayHaveMore: true, hasGrown: true, nowMs: 2000 },
    { mayHaveMore: true, grownMs: 2000 },
  ],
  [
    'gave no more lines',
    log(followed, { mayHaveMore: true }),
    { kind: 'turned', mayHaveMore: false, hasGrown: false, nowMs: 2000 },
    { mayHaveMore: false },
  ],
  [
    'has more lines stored',
    log(followed),
    { kind: 'stored', position: { ...at60, offset: 90 } },
    { hasStored: true, content: { position: { ...at60, offset: 90 } } },
  ],
  [
    'is compressed and stored in part',
    log(packed),
    { kind: 'stored', position: { ...at60, offset: 90 } },
    { hasStored: true, content: { position: { ...at60, offset: 90 } } },
  ],
  [
    'is compressed and stored to its end',
    log(packed),
    { kind: 'stored', position: { ...at60, offset: 90, packedBytes: 30 } },
    { hasStored: true, content: { kind: 'done' } },
    true,
  ],
  ['is compressed and has no content', log(packed), { kind: 'empty' }, { content: { kind: 'done' } }, true],
  ['was written to while it was being emptied', log(followed), { kind: 'written' }, { mayHaveMore: true }],
  [
    'was cut off',
    log(followed, { hasStored: true, bytesWhenFound: 50 }),
    { kind: 'replaced' },
    { mayHaveMore: true, hasStored: false, bytesWhenFound: 0, content: { kind: 'new' } },
  ],
  [
    'is followed, and a commit failed',
    log(followed, { hasStored: true, bytesWhenFound: 50 }),
    { kind: 'doubted' },
    { mayHaveMore: true, content: { kind: 'new' } },
  ],
  [
    'is compressed, and a commit failed',
    log(packed),
    { kind: 'doubted' },
    { mayHaveMore: true, content: { kind: 'new' } },
    true,
  ],
  ['is ignored as an old generation, and a commit failed', quiet('history'), { kind: 'doubted' }, {}],
  [
    'cannot be read',
    log(followed),
    { kind: 'failed', message: 'no', nowMs: 2000 },
    { mayHaveMore: true, failure: { message: 'no', retryMs: 1000, retryAtMs: 3000 } },
  ],
  [
    'cannot be read again',
    log(followed, { failure: { message: 'no', retryMs: 40_000, retryAtMs: 2000 } }),
    { kind: 'failed', message: 'no', nowMs: 2000 },
    { mayHaveMore: true, failure: { message: 'no', retryMs: 60_000, retryAtMs: 62_000 } },
  ],
  [
    'can be read after a failure',
    log(followed, { failure: { message: 'no', retryMs: 1000, retryAtMs: 2000 } }),
    { kind: 'succeeded' },
    { failure: null },
  ],
];

function changed(state: LogState, { content, ...rest }: Change): LogState {
  const isOther = content?.kind !== undefined && content.kind !== state.content.kind;
  const full = isOther ? content : { ...state.content, ...content };
  return { ...state, ...rest, content: full as LogContent };
}

describe('a log', () => {
  it.each(rows.map(([what, ...row]) => ({ what, row })))('that $what', ({ row }) => {
    const [state, observation, change, closes] = row;
    Object.freeze(state);
    Object.freeze(state.content);
    const expected: Step = { state: changed(state, change), ...(closes === true ? { closes: source } : {}) };
    expect(next(state, observation)).toEqual(expected);
  });

  it('that is not followed cannot be read where it ends', () => {
    const ended: Observation = { kind: 'ended', restBytes: 0, endsInLine: false, nowMs: 0 };
    expect(() => next(quiet('done'), ended)).toThrow('only followed content');
    expect(() => next(quiet('new'), { kind: 'stored', position: at60 })).toThrow('only content that is read');
  });

  it('that existed when following started has its length recorded', () => {
    expect(firstState(sighting, 1000, true).bytesWhenFound).toBe(100);
    expect(firstState(sighting, 1000, false).bytesWhenFound).toBe(0);
  });

  it('that failed is due when its retry time has come, or when the clock went back', () => {
    const failed = log(followed, { failure: { message: 'no', retryMs: 1000, retryAtMs: 100_000 } });
    expect([39_999, 40_000, 99_999, 100_000].map((nowMs) => isDue(failed, nowMs))).toEqual([
      true,
      false,
      false,
      true,
    ]);
    expect(isDue(log(followed), 0)).toBe(true);
  });

  it('lags by the bytes that were seen and are not stored', () => {
    expect([followed, packed, { kind: 'done' } as const].map((content) => lagBytes(log(content)))).toEqual([
      40, 0, 0,
    ]);
  });

  it('ends inside a record since that was read, or since it got its present name', () => {
    const state = log({ ...followed, rest });
    expect(restSinceMs(log(followed))).toBe(null);
    expect(restSinceMs(log(packed))).toBe(null);
    expect(restSinceMs(state)).toBe(1500);
    expect(restSinceMs({ ...state, movedMs: 1700 })).toBe(1700);
    expect(restSinceMs({ ...state, goneSinceMs: 1800, movedMs: 1700 })).toBe(1800);
  });
});

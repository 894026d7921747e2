import { expect, it } from 'vitest';
import { LogstrataError } from '../../engine/core/errors.js';
import { TimedPieces } from '../../server/pace/timed-pieces.js';
import { piece, ScriptedStore, type Step } from './scripted-store.js';

const never = new Promise(() => undefined);
const query = { limit: 10, predicates: [] };

async function begin(
  limitMs: number,
  steps: Iterable<Step>,
): Promise<{ pieces: TimedPieces; store: ScriptedStore }> {
  const store = new ScriptedStore(() => steps);
  const pieces = new TimedPieces(limitMs);
  await pieces.start((signal) => store.scan(query, { signal }));
  return { pieces, store };
}

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

it('returns the pieces and then the end, repeatedly', async () => {
  const { pieces } = await begin(1000, [piece(1), piece(2)]);
  expect(await pieces.next()).toEqual(piece(1));
  expect(await pieces.next()).toEqual(piece(2));
  expect(pieces.isDone).toBe(false);
  expect(await pieces.next()).toBeUndefined();
  expect(pieces.isDone).toBe(true);
  expect(await pieces.next()).toBeUndefined();
});

it('does not count the time of the reader, but still ends a scan that hangs afterwards', async () => {
  const { pieces, store } = await begin(30, [piece(1), piece(2), never]);
  await pieces.next();
  // Longer than the limit: the timer of the first wait expires while nobody waits.
  await pass(80);
  expect(await pieces.next()).toEqual(piece(2));
  await pass(80);
  await expect(pieces.next()).rejects.toMatchObject({ code: 'timeout' });
  expect(store.lastSignal?.aborted).toBe(true);
});

it('adds up the waits', async () => {
  function* steps(): Generator<Step> {
    for (let number = 1; ; number++) {
      // Begins when the scan reaches it.
      yield pass(60);
      yield piece(number);
    }
  }
  const { pieces } = await begin(100, steps());
  expect(await pieces.next()).toEqual(piece(1));
  await expect(pieces.next().then(() => pieces.next())).rejects.toMatchObject({ code: 'timeout' });
});

it('does not count the time in which the scan is on hold for others', async () => {
  const { pieces } = await begin(30, [pass(120), piece(1), never]);
  const waiting = pieces.next();
  pieces.hold();
  expect(await waiting).toEqual(piece(1));
  pieces.goOn();
  await expect(pieces.next()).rejects.toMatchObject({ code: 'timeout' });
});

it('gives the reason of an interruption to the waiting reader, and to later ones', async () => {
  const gone = new LogstrataError('cancelled', 'gone');
  const { pieces, store } = await begin(1000, [piece(1), never]);
  await pieces.next();
  const waiting = pieces.next();
  pieces.interrupt(gone);
  await expect(waiting).rejects.toBe(gone);
  await expect(pieces.next()).rejects.toBe(gone);
  await pieces.close();
  expect(store.ended).toBe(1);
});

it('interrupts nothing once the scan is over, and gives no scan an aborted signal', async () => {
  const signals: AbortSignal[] = [];
  for (const isInterrupted of [false, true, false]) {
    const { pieces, store } = await begin(1000, isInterrupted ? [never] : []);
    expect(store.lastSignal?.aborted).toBe(false);
    const next = pieces.next();
    if (isInterrupted) pieces.interrupt(new LogstrataError('cancelled', 'gone'));
    await next.catch(() => undefined);
    if (!isInterrupted) pieces.interrupt(new LogstrataError('cancelled', 'too late'));
    await pieces.close();
    expect(store.lastSignal?.aborted).toBe(isInterrupted);
    signals.push(store.lastSignal!);
  }
  // Only the signal of a scan that ended by itself is reused.
  expect(signals.slice(2)).not.toContain(signals[1]);
  expect(signals[1]).toBe(signals[0]);
});

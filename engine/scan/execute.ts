import { answerBytesMax, knownAnswersMax } from '../terms/limits.js';
import { Answer, type AnswerSettings } from './answer.js';
import type { Query, ScanStats } from './plan/query.js';
import type { PieceIterator, Scan, ScanOptions } from './plan/scan.js';
import type { Snapshot } from '../store/reading/snapshot.js';

/** Statistics with all counters at zero. */
export function newScanStats(): ScanStats {
  return {
    runs: 0,
    rowGroups: 0,
    rowGroupsPrunedByTime: 0,
    rowGroupsPrunedByZone: 0,
    rowGroupsPrunedByValue: 0,
    rowGroupsPrunedByGram: 0,
    rowGroupsPrunedByDictionary: 0,
    rowGroupsScanned: 0,
    rowsScanned: 0,
    rowsReturned: 0,
    bytesRead: 0,
    columnsDecoded: 0,
    columnsCached: 0,
    columnsPrunedByGram: 0,
    gramPiecesRead: 0,
    valuePiecesRead: 0,
    selectMs: 0,
    writeMs: 0,
  };
}

/** The options of a scan, and the resources that the engine adds to them. */
export type ScanSettings = ScanOptions & AnswerSettings;

/**
 * Starts a query on a snapshot and takes over the snapshot. The snapshot is released when the answer has ended or failed, when the
 * iteration is ended early (`return`, also before the first `next`), or when the signal is aborted. A caller that neither reads the lines
 * nor aborts must call `return`.
 *
 * Errors are thrown by `lines`: `invalid` for a query that does not fit the schema; `cancelled`, or the signal's own reason where that is a
 * `LogstrataError`; and whatever reading the row groups throws. Nothing is read before the first `next`.
 */
export function executeScan(snapshot: Snapshot, query: Query, settings: ScanSettings = {}): Scan {
  const stats = newScanStats();
  if (settings.joins !== true || settings.lends !== true)
    return { stats, lines: new Answer(snapshot, query, settings, stats) };
  const { runs, schema } = snapshot;
  const known = ofStates.get(runs)?.get(query);
  if (known?.schema === schema) {
    snapshot.release();
    return { stats: Object.assign(stats, known.stats), lines: wholeAnswer(known.bytes) };
  }
  // Most pages are asked for once, and copying one takes longer than writing it.
  const isAgain = asked.has(query);
  asked.add(query);
  const keep = (bytes: Uint8Array): void => {
    const answers = ofStates.get(runs) ?? new Map<Query, KnownAnswer>();
    if (bytes.length > answerBytesMax) return;
    if (answers.size === knownAnswersMax) answers.delete(answers.keys().next().value!);
    const { rowsReturned, rowGroups } = stats;
    answers.set(query, { schema, bytes, stats: { runs: stats.runs, rowGroups, rowsReturned } });
    ofStates.set(runs, answers);
  };
  const answer = new Answer(snapshot, query, isAgain ? { ...settings, keep } : settings, stats);
  return { stats, lines: answer };
}

/** A whole answer in one piece. Nobody changes the bytes, so callers may cache what they derive from them. */
interface KnownAnswer {
  readonly schema: Snapshot['schema'];
  readonly bytes: Uint8Array;
  readonly stats: Pick<ScanStats, 'runs' | 'rowGroups' | 'rowsReturned'>;
}

/** Short answers on each state to the last queries that were asked again. A new state has other runs. */
const ofStates = new WeakMap<Snapshot['runs'], Map<Query, KnownAnswer>>();
/** The queries (the same object) that were asked. */
const asked = new WeakSet<Query>();

/** An answer that was given before. */
function wholeAnswer(bytes: Uint8Array): PieceIterator {
  const pieces = (async function* (): AsyncGenerator<Uint8Array, void> {
    yield bytes;
  })();
  return Object.assign(pieces, { isAtEnd: true });
}

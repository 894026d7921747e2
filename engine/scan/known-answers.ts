import { knownAnswersMax } from '../terms/limits.js';
import type { Query, ScanStats } from './plan/query.js';
import type { Snapshot } from '../store/reading/snapshot.js';

/** A whole answer in one piece. Nobody changes the bytes, so callers may cache what they derive from them. */
export interface KnownAnswer {
  readonly query: Query;
  readonly schema: Snapshot['schema'];
  readonly bytes: Uint8Array;
  readonly stats: Pick<ScanStats, 'runs' | 'rowGroups' | 'rowsReturned'>;
}

/** The last short answers on each state, oldest first. A new state has other runs. */
const ofStates = new WeakMap<Snapshot['runs'], KnownAnswer[]>();

/** The answer that was given to the same query (the same object) on the same state; undefined where it is not known. */
export function knownAnswer({ runs, schema }: Snapshot, query: Query): KnownAnswer | undefined {
  return ofStates.get(runs)?.find((known) => known.query === query && known.schema === schema);
}

/** Keeps an answer, in place of the oldest one where there are `knownAnswersMax`. */
export function keepAnswer(runs: Snapshot['runs'], answer: KnownAnswer): void {
  const known = ofStates.get(runs) ?? [];
  if (known.length === knownAnswersMax) known.shift();
  known.push(answer);
  ofStates.set(runs, known);
}

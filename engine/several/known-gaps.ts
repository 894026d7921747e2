import { comparePositions, type Position } from '../core/cursor.js';
import { knownQueriesMax } from '../core/limits.js';
import { filtersKey, type Predicate, type Schema } from '../core/schema.js';
import { addedRuns } from '../scan/added-runs.js';
import type { Snapshot, SnapshotRuns } from '../store/reading/snapshot.js';

/** Positions between two others, which are not among them. */
export interface Gap {
  readonly after: Position;
  readonly before: Position;
}

export const start: Position = { partition: 0, ordinal: 0 };
export const end: Position = { partition: Infinity, ordinal: 0 };
/** Gaps that are kept for one query. Two are enough while an agent has one match. */
const gapsMax = 4;

/** The later of two positions. */
export function later(a: Position, b: Position): Position {
  return comparePositions(a, b) < 0 ? b : a;
}

/** The earlier of two positions. */
export function earlier(a: Position, b: Position): Position {
  return comparePositions(a, b) < 0 ? a : b;
}

/** The position before another one. */
export function before({ partition, ordinal }: Position): Position {
  return { partition, ordinal: ordinal - 1 };
}

/** The position after another one. */
export function after({ partition, ordinal }: Position): Position {
  return { partition, ordinal: ordinal + 1 };
}

/**
 * Where an agent has no match for some filters. A page over several agents ends with those that have many matches; without this, the next page
 * would again search an agent with few of them as far as the last one did.
 */
export class KnownGaps {
  #gaps: Gap[] = [];
  #runs: SnapshotRuns | null = null;

  /** Leaves out of the gaps what has been added since they were found. */
  renew(runs: SnapshotRuns): void {
    if (this.#runs === runs) return;
    const added = this.#runs === null || this.#gaps.length === 0 ? [] : addedRuns(this.#runs, runs);
    this.#runs = runs;
    for (const { partition, firstOrdinal, rows } of added) {
      const first = { partition, ordinal: firstOrdinal };
      const last = { partition, ordinal: firstOrdinal + rows - 1 };
      this.#gaps = this.#gaps
        .flatMap((gap) => [
          { after: gap.after, before: earlier(gap.before, first) },
          { after: later(gap.after, last), before: gap.before },
        ])
        .filter((gap) => comparePositions(after(gap.after), gap.before) < 0);
      this.#gaps.splice(0, this.#gaps.length - gapsMax);
    }
  }

  /** The part of a range that may have matches: without gaps at its ends. */
  trim(range: Gap): Gap {
    let { after: low, before: high } = range;
    for (const gap of this.#gaps) {
      const isBegun = comparePositions(gap.after, low) <= 0 && comparePositions(low, gap.before) < 0;
      if (isBegun) low = before(gap.before);
      const isEnded = comparePositions(gap.after, high) < 0 && comparePositions(high, gap.before) <= 0;
      if (isEnded) high = after(gap.after);
    }
    return { after: low, before: high };
  }

  /** Notes that there is no match between two positions of a state, unless the gaps are of another state now. */
  add(gap: Gap, runs: SnapshotRuns): void {
    if (this.#runs !== runs || comparePositions(after(gap.after), gap.before) >= 0) return;
    let joined = gap;
    this.#gaps = this.#gaps.filter((other) => {
      const touches =
        comparePositions(other.after, joined.before) < 0 && comparePositions(joined.after, other.before) < 0;
      if (touches)
        joined = {
          after: earlier(joined.after, other.after),
          before: later(joined.before, other.before),
        };
      return !touches;
    });
    this.#gaps.push(joined);
    if (this.#gaps.length > gapsMax) this.#gaps.shift();
  }
}

/** The gaps of an agent, while it has these fields. */
interface GapsOfAgent {
  readonly schema: Schema;
  readonly ofFilters: Map<string, KnownGaps>;
}

const ofAgents = new WeakMap<object, GapsOfAgent>();

/** The gaps of an agent for some filters, as of a state. Those of the filters that were used last are kept. */
export function gapsOf(
  agent: object,
  predicates: readonly Predicate[],
  { schema, runs }: Pick<Snapshot, 'schema' | 'runs'>,
): KnownGaps {
  let known = ofAgents.get(agent);
  if (known?.schema !== schema) ofAgents.set(agent, (known = { schema, ofFilters: new Map() }));
  const { ofFilters } = known;
  const key = filtersKey(predicates);
  const gaps = ofFilters.get(key) ?? new KnownGaps();
  ofFilters.delete(key);
  ofFilters.set(key, gaps);
  if (ofFilters.size > knownQueriesMax) ofFilters.delete(ofFilters.keys().next().value!);
  gaps.renew(runs);
  return gaps;
}

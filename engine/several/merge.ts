import { highHalf, lowHalf, type Position } from '../core/cursor.js';
import { wordsOfEntry } from '../kernels/merged-rows.js';
import type { LinePart } from '../scan/json-lines.js';
import type { WrittenFields } from '../scan/json-columns.js';
import type { HeldTable, MergedGroup, MergedRows } from '../scan/line-writer.js';
import type { ScanWork } from '../scan/row-group-filter.js';
import type { RowGroup } from '../store/reading/snapshot.js';
import type { AgentCut, AgentStream } from './agent-stream.js';

/** Rows of the first group, so that an answer begins soon, and of the largest. Entries of 16 agents take 136 bytes each. */
const firstRows = 256;
const rowsMax = 16 * 1024;
const growth = 4;
/** Row groups of one agent in a group. The columns of all are in memory at once. */
const rowGroupsMax = 2;

/** One agent of a merge: its matches, and its last record before a place; null where all records match, and that is the match before. */
export interface MergedAgent {
  readonly stream: AgentStream;
  readonly cut: AgentCut | null;
  /** Where the search began. */
  readonly after: Position;
}

/**
 * Merges the matches of several agents in the order of hour, clock, agent and position. Only the current matches of each agent are in memory.
 * Leaves out the first `skip` of them.
 */
export async function* mergedRows(
  agents: readonly MergedAgent[],
  { skip, limit }: { readonly skip: number; readonly limit: number },
  { pace }: Pick<ScanWork, 'pace'>,
): AsyncGenerator<MergedRows, void> {
  const streams = agents.map(({ stream }) => stream);
  const positions = Uint32Array.from(
    agents.flatMap(({ after: { partition, ordinal } }) => [lowHalf(ordinal), highHalf(partition, ordinal)]),
  );
  try {
    await Promise.all(streams.map((stream) => stream.next()));
    for (let skipped = 0; skipped < skip; skipped++) {
      const index = leastOf(streams);
      if (index < 0) return;
      pass(positions, index, streams[index]!);
      if (!streams[index]!.step()) await streams[index]!.next();
      if (skipped % rowsMax === 0) await pace.pause();
    }
    let size = firstRows;
    for (let left = limit; left > 0;) {
      const group = new GroupOfRows(agents, positions, Math.min(left, size));
      await group.fill();
      if (group.rows === 0) return;
      left -= group.rows;
      size = Math.min(rowsMax, size * growth);
      await pace.pause();
      yield group.merged();
    }
  } finally {
    await Promise.all(streams.map((stream) => stream.close()));
  }
}

/** Index of the stream whose match comes first; -1 at the end of all. */
function leastOf(streams: readonly AgentStream[]): number {
  let least = -1;
  let hour = Infinity;
  let clock = Infinity;
  for (let i = 0; i < streams.length; i++) {
    const stream = streams[i]!;
    if (stream.hour > hour || stream.hour === Infinity) continue;
    if (stream.hour === hour && stream.clock >= clock) continue;
    least = i;
    ({ hour, clock } = stream);
  }
  return least;
}

/** Notes that the current match of an agent has been passed. */
function pass(positions: Uint32Array, index: number, { hour, ordinal }: AgentStream): void {
  positions[2 * index] = lowHalf(ordinal);
  positions[2 * index + 1] = highHalf(hour, ordinal);
}

/** The next rows of a merge, as entries of `writeMergedRows`. Threads read them in place. */
class GroupOfRows {
  rows = 0;
  readonly #entries: Uint32Array;
  readonly #words: number;
  readonly #members: Member[] = [];
  /** For each agent, the numbers of its row groups among the members, and the one that was used last. */
  readonly #numbers: Map<RowGroup, number>[];
  readonly #latest: { rowGroup: RowGroup | null; number: number }[];

  /** @param positions of each agent that which has been passed, its low half first */
  constructor(
    private readonly agents: readonly MergedAgent[],
    private readonly positions: Uint32Array,
    private readonly rowsMax: number,
  ) {
    this.#words = wordsOfEntry(agents.length);
    this.#entries = new Uint32Array(new SharedArrayBuffer(4 * rowsMax * this.#words));
    this.#numbers = agents.map(() => new Map());
    this.#latest = agents.map(() => ({ rowGroup: null, number: 0 }));
  }

  async fill(): Promise<void> {
    const { agents, positions } = this;
    const streams = agents.map(({ stream }) => stream);
    const cuts = agents.some(({ cut }) => cut !== null) ? agents.map(({ cut }) => cut) : [];
    const latest = this.#latest;
    while (this.rows < this.rowsMax) {
      const index = leastOf(streams);
      if (index < 0) return;
      const stream = streams[index]!;
      const { hour, clock } = stream;
      const known = latest[index]!;
      if (known.rowGroup !== stream.rowGroup && !this.#take(index, stream.rowGroup!)) return;
      for (let k = 0; k < cuts.length; k++) {
        // At equal clocks, the records of the agents that are named before come first.
        const passed = k < index ? clock : clock - 1;
        const cut = cuts[k]!;
        if (cut === null || k === index || hour < cut.hour || (hour === cut.hour && passed < cut.clock))
          continue;
        if (!cut.step(hour, passed)) await cut.move(hour, passed);
        positions[2 * k] = cut.low;
        positions[2 * k + 1] = cut.high;
      }
      pass(positions, index, stream);
      this.#add(index, known.number, stream.row);
      if (!stream.step()) await stream.next();
    }
  }

  /** Takes a row group in; false where there is no room for a further one of the agent. */
  #take(index: number, rowGroup: RowGroup): boolean {
    const numbers = this.#numbers[index]!;
    let number = numbers.get(rowGroup);
    if (number === undefined && numbers.size === rowGroupsMax) return false;
    number ??= this.#members.push({ rowGroup, written: this.agents[index]!.stream.written }) - 1;
    numbers.set(rowGroup, number);
    Object.assign(this.#latest[index]!, { rowGroup, number });
    return true;
  }

  #add(index: number, number: number, row: number): void {
    const [entries, positions] = [this.#entries, this.positions];
    let at = this.rows++ * this.#words;
    entries[at++] = number + index * 0x10000;
    entries[at++] = row;
    for (let word = 0; word < positions.length; word++) entries[at++] = positions[word]!;
  }

  merged(): MergedRows {
    const { rows } = this;
    const agents = this.agents.length;
    const part: LinePart = {
      rows: this.#entries,
      first: 0,
      end: rows,
      partition: 0,
      ordinalOfRow0: 0,
      agents,
    };
    return { unit: { rowGroup: new MergedMembers(this.#members, agents) }, take: rows, part };
  }
}

/** A row group, and the fields that are written of it. */
interface Member {
  readonly rowGroup: RowGroup;
  readonly written: WrittenFields;
}

/** The row groups of merged rows. */
class MergedMembers implements MergedGroup {
  constructor(
    private readonly members: readonly Member[],
    private readonly agents: number,
  ) {}

  async hold(hold: Parameters<MergedGroup['hold']>[0]): Promise<HeldTable> {
    const held: HeldTable[] = [];
    const release = (): void => held.forEach((table) => table.release());
    try {
      // Only the first may wait for memory, as nothing is held then.
      for (const { rowGroup, written } of this.members)
        held.push(await hold(rowGroup, written, held.length > 0));
    } catch (error) {
      release();
      throw error;
    }
    const tables = held.map(({ table }) => table);
    const { format, block } = tables[0]!;
    return {
      table: {
        format,
        block,
        columnCount: 0,
        fixedBytes: Math.max(...tables.map(({ fixedBytes }) => fixedBytes)),
        columns: tables.every(({ columns }) => columns === null) ? null : [],
        merged: { tables, agents: this.agents },
      },
      lineBytes: held.reduce((sum, { lineBytes }) => sum + lineBytes, 0) / held.length,
      columns: [],
      bytes: held.reduce((sum, { bytes }) => sum + bytes, 0),
      release,
    };
  }
}

import { idColumns, type SetName } from './question.js';

/** A record that a question refers to. */
export interface ProbeRecord {
  readonly seq: number;
  readonly time: string;
  /** Its value in the set's id column, which no other record has. */
  readonly key: string;
  readonly message: string;
}

/** The facts about the records of a set that its questions need. They are found by reading the file, and are the same in every run. */
export interface Probes {
  readonly middle: ProbeRecord;
  /** The record after which the `bulkRows` records of the bulk question begin; null where they begin with the first record. */
  readonly bulkStart: ProbeRecord | null;
  readonly bulkRows: number;
  /** A record whose id is searched for. */
  readonly wanted: ProbeRecord;
  /** A record of the first day, whose id is searched for. */
  readonly oldest: ProbeRecord;
  /** Only for web: an address that few records have. */
  readonly rareAddress: string;
  readonly rareAddressRows: number;
}

const bulkRowsMax = 1_000_000;
/** For a smaller set the bulk question asks for this share: digesting an answer takes longer than answering. */
const bulkShare = 1 / 4;
/** Wanted number of records of the rare address. */
const rareRowsWanted = 8;

/** The value of a key as it is written in a line: cheaper than parsing the whole line. */
function textOf(line: string, key: string): string {
  const found = new RegExp(`"${key}":(?:"((?:[^"\\\\]|\\\\.)*)"|(-?\\d+))`).exec(line);
  return found?.[1] ?? found?.[2] ?? '';
}

function probe(name: SetName, seq: number, line: string): ProbeRecord {
  const { message } = JSON.parse(line) as { message: string };
  return {
    seq,
    time: textOf(line, 'time'),
    key: textOf(line, idColumns[name]),
    message,
  };
}

/** Reads a set once and picks the records that its questions refer to. */
export async function pickProbes(name: SetName, lines: AsyncIterable<string>, rows: number): Promise<Probes> {
  const bulkRows = Math.min(bulkRowsMax, Math.ceil(rows * bulkShare));
  const middleSeq = Math.max(1, Math.floor(rows / 2));
  const bulkSeq = Math.floor((rows - bulkRows) / 2);
  const wantedSeq = Math.max(1, Math.floor(rows * 0.37));
  const oldestSeq = Math.max(1, Math.floor(rows * 0.01));
  const addressRows = new Map<string, number>();
  const picked = new Map<number, ProbeRecord>();
  let seq = 0;
  for await (const line of lines) {
    seq++;
    if ([middleSeq, bulkSeq, wantedSeq, oldestSeq].includes(seq)) picked.set(seq, probe(name, seq, line));
    if (name !== 'web') continue;
    const address = textOf(line, 'remote_addr');
    addressRows.set(address, (addressRows.get(address) ?? 0) + 1);
  }
  if (seq !== rows) throw new Error(`the set ${name} has ${seq} records, not ${rows}`);
  const [rareAddress, rareAddressRows] = rarest(addressRows);
  return {
    middle: picked.get(middleSeq)!,
    bulkStart: picked.get(bulkSeq) ?? null,
    bulkRows,
    wanted: picked.get(wantedSeq)!,
    oldest: picked.get(oldestSeq)!,
    rareAddress,
    rareAddressRows,
  };
}

/** The address whose number of records is nearest to the wanted one; the first in the file where there are several. */
function rarest(counts: ReadonlyMap<string, number>): [string, number] {
  let best: [string, number] = ['', 0];
  for (const [address, count] of counts) {
    if (Math.abs(count - rareRowsWanted) < Math.abs(best[1] - rareRowsWanted)) best = [address, count];
  }
  return best;
}

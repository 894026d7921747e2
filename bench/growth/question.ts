import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ScanStats } from '../../engine/index.js';
import { spreadOf, type Spread } from '../spread.js';
import type { Asked, When } from './asking.js';
import { dropFromPageCache } from './page-cache.js';

/** A question about the agent `web`. */
export interface GrowthQuestion {
  readonly id: string;
  readonly title: string;
  /** The query string. */
  readonly raw: string;
  /** The number of records that the answer must have; null where it is not known. */
  readonly rows: number | null;
}

/** What was read for an answer. */
export type Cost = Pick<
  ScanStats,
  | 'bytesRead'
  | 'rowGroups'
  | 'rowGroupsScanned'
  | 'rowsScanned'
  | 'valuePiecesRead'
  | 'gramPiecesRead'
  | 'columnsDecoded'
>;

/** The times where every byte comes from the disk, and how many bytes did. */
export interface FromDisk {
  readonly openMs: Spread;
  readonly firstMs: Spread;
  readonly bytes: number;
}

/** The times of a question: the first one after opening, and warm. */
export interface Measured {
  readonly id: string;
  readonly title: string;
  readonly rows: number;
  readonly openMs: Spread;
  readonly firstMs: Spread;
  /** Opening and the first time where no file is in the page cache; null where files can't be removed from it. */
  readonly fromDisk: FromDisk | null;
  readonly warmMs: Spread;
  readonly first: Cost;
  readonly warm: Cost;
}

const run = promisify(execFile);

/**
 * Measures a question in `repeat` new processes. One process before them is not counted: it brings the files into the page cache. Throws
 * where an answer does not have the expected number of records.
 */
export async function measure(
  location: string,
  { id, title, raw, rows }: GrowthQuestion,
  repeat: number,
  signal: AbortSignal,
): Promise<Measured> {
  const script = join(import.meta.dirname, 'asking.js');
  const ask = async (when: When): Promise<Asked> => {
    const { stdout } = await run(process.execPath, [script, location, raw, when], { signal });
    const answer = JSON.parse(stdout) as Asked;
    if (rows !== null && answer.rows !== rows)
      throw new Error(`"${title}" has ${answer.rows} records for an answer, not ${rows}`);
    return answer;
  };
  await ask('once');
  const asked: Asked[] = [];
  const askedFromDisk: Asked[] = [];
  for (let turn = 0; turn < repeat; turn++) {
    asked.push(await ask('repeatedly'));
    if (dropFromPageCache(location)) askedFromDisk.push(await ask('once'));
  }
  return {
    id,
    title,
    rows: asked[0]!.rows,
    openMs: spreadOf(asked.map(({ openMs }) => openMs)),
    firstMs: spreadOf(asked.map(({ firstMs }) => firstMs)),
    fromDisk: askedFromDisk.length === 0 ? null : fromDiskOf(askedFromDisk),
    warmMs: spreadOf(asked.flatMap(({ warmMs }) => warmMs)),
    first: costOf(asked[0]!.first),
    warm: costOf(asked[0]!.warm),
  };
}

function fromDiskOf(asked: readonly Asked[]): FromDisk {
  return {
    openMs: spreadOf(asked.map(({ openMs }) => openMs)),
    firstMs: spreadOf(asked.map(({ firstMs }) => firstMs)),
    bytes: spreadOf(asked.map(({ diskBytes }) => diskBytes)).median,
  };
}

function costOf(stats: ScanStats): Cost {
  const { bytesRead, rowGroups, rowGroupsScanned, rowsScanned } = stats;
  const { valuePiecesRead, gramPiecesRead, columnsDecoded } = stats;
  return {
    bytesRead,
    rowGroups,
    rowGroupsScanned,
    rowsScanned,
    valuePiecesRead,
    gramPiecesRead,
    columnsDecoded,
  };
}

import { randomFillSync } from 'node:crypto';
import { closeSync, ftruncateSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { NumberColumn } from '../../engine/columns/column.js';
import { filterBlockBytes, hashStrings } from '../../engine/kernels/value-filter.js';
import { bloomHeader, blockOfHash, isInBlock, type ValueHash } from '../../engine/parquet/bloom-filter.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import type { Manifest, Run, SegmentEntry } from '../../engine/store/manifest/manifest.js';
import { publishManifest, readNewestManifest } from '../../engine/store/manifest/manifest-file.js';
import { segmentFile } from '../../engine/store/manifest/segment-place.js';
import {
  encodeSummary,
  filterBytes,
  type SketchPlace,
  type ValueFilterPlace,
} from '../../engine/store/sealed/segment-filters.js';
import {
  buildValueFilter,
  joinSketches,
  mayBeInStripe,
  type ValueFilter,
} from '../../engine/store/sealed/value-filter.js';
import { hourMs } from '../../engine/terms/cursor.js';
import { rowGroupRowsMax, segmentRowGroupsMax } from '../../engine/terms/limits.js';

/** Rows of a segment that is as full as can be. */
export const fullSegmentRows = rowGroupRowsMax * segmentRowGroupsMax;

/** Begins the names of their files. */
export const madeUpName = 'made-up';

/** What was made, and which row groups had filters at first that said "perhaps" to an id that is asked for. */
export interface MadeUp {
  readonly segments: number;
  readonly rowGroups: number;
  /** Bytes of filters and summaries that were written. */
  readonly bytes: number;
  /** For each id: the row groups whose sketch and filter both had it by chance. They got others. */
  readonly passed: readonly number[];
}

/**
 * Adds full segments to the manifest of `agent`, in hours that follow its only segment. Their filters of `field` are real, of random
 * values, and so are their summaries; all else of their files is a hole, the footers too, so that a question which reads more
 * fails.
 *
 * @param ids what will be asked for: no filter of a made-up row group has them
 */
export async function addMadeUpSegments(
  location: string,
  agent: string,
  field: number,
  ids: readonly string[],
  count: number,
  hours: number,
  onSegment: (index: number) => void,
): Promise<MadeUp> {
  const directory = await openRealDirectory(location, { create: false });
  const manifest = (await readNewestManifest(directory, agent))!;
  const model = manifest.segments[0]!;
  const first = model.runs.at(-1)!.partition + 1;
  const hashes = ids.map(hashOf);
  const passed = ids.map(() => 0);
  const entries: SegmentEntry[] = [];
  let bytes = 0;
  for (let index = 0; index < count; index++) {
    onSegment(index);
    const from = first + Math.floor((hours * index) / count);
    const until = first + Math.floor((hours * (index + 1)) / count);
    const made = writeSegment(
      model,
      field,
      () => nextFilter(hashes, passed),
      from,
      until,
      index,
      (file) => join(location, agent, file),
    );
    entries.push(made);
    bytes += made.valueFilterBytes + made.summaryBytes;
  }
  await publishManifest(directory, agent, withEntries(manifest, entries));
  return { segments: count, rowGroups: count * segmentRowGroupsMax, bytes, passed };
}

function hashOf(id: string): ValueHash {
  const bytes = Buffer.from(id);
  const [low, high] = hashStrings(bytes, Uint32Array.of(0, bytes.length), 1);
  return { low: low!, high: high! };
}

const values = new BigInt64Array(rowGroupRowsMax);

/** The filter of as many random values as a row group has; of others, where one of the hashes seems to be among them. */
function nextFilter(hashes: readonly ValueHash[], passed: number[]): ValueFilter {
  for (;;) {
    const column: NumberColumn = {
      kind: 'int64',
      length: values.length,
      values: randomFillSync(values),
      validity: null,
    };
    const filter = buildValueFilter(column, true)!;
    const found = hashes.map((hash) => seemsToHave(filter, hash));
    if (!found.includes(true)) return filter;
    found.forEach((one, i) => (passed[i]! += one ? 1 : 0));
  }
}

/** Whether sketch and Bloom filter both have the value. */
function seemsToHave({ blocks, bytes, sketch }: ValueFilter, hash: ValueHash): boolean {
  const stripe = blockOfHash(hash, sketch.length / filterBlockBytes) * filterBlockBytes;
  if (!mayBeInStripe(sketch.subarray(stripe, stripe + filterBlockBytes), 0, hash)) return false;
  return isInBlock(bytes, bloomHeader(blocks).length + blockOfHash(hash, blocks) * filterBlockBytes, hash);
}

/** Writes the filters and the summary where a segment as large as the model's row groups would have them. */
function writeSegment(
  model: SegmentEntry,
  field: number,
  next: () => ValueFilter,
  from: number,
  until: number,
  index: number,
  pathOf: (file: string) => string,
): SegmentEntry {
  const file = segmentFile(madeUpName, index, from);
  mkdirSync(dirname(pathOf(file)), { recursive: true });
  const handle = openSync(pathOf(file), 'wx');
  try {
    const columnBytes = Math.ceil((model.footerOffset / model.rows) * rowGroupRowsMax);
    const valueFilters: ValueFilterPlace[] = [];
    const sketchesOf: Uint8Array[] = [];
    let offset = model.headerBytes;
    const write = (bytes: Uint8Array): number => {
      writeSync(handle, bytes, 0, bytes.length, offset);
      offset += bytes.length;
      return offset - bytes.length;
    };
    for (let rowGroup = 0; rowGroup < segmentRowGroupsMax; rowGroup++) {
      const { blocks, bytes, sketch } = next();
      offset += columnBytes;
      valueFilters.push({ rowGroup, field, offset: write(bytes), blocks });
      sketchesOf.push(sketch);
    }
    const joined = joinSketches(sketchesOf);
    const sketches: SketchPlace[] = [{ field, offset: write(joined.bytes), stripes: joined.stripes }];
    const places = { gramFilters: [], valueFilters, sketches };
    const summary = encodeSummary(places, segmentRowGroupsMax);
    write(summary);
    const footerBytes = model.footerBytes * segmentRowGroupsMax;
    ftruncateSync(handle, offset + footerBytes);
    return {
      ...model,
      file,
      bytes: offset + footerBytes,
      rows: fullSegmentRows,
      rowGroupRows: valueFilters.map(() => rowGroupRowsMax),
      runs: runsOf(from, until),
      timeMinMs: from * hourMs,
      timeMaxMs: until * hourMs - 1,
      footerOffset: offset,
      footerBytes,
      gramFilterBytes: 0,
      valueFilterBytes: filterBytes(places, segmentRowGroupsMax),
      summaryBytes: summary.length,
      replaces: [],
    };
  } finally {
    closeSync(handle);
  }
}

/** A full segment's rows, as many in each hour as in the others. */
function runsOf(from: number, until: number): Run[] {
  const rowBefore = (hour: number): number => Math.floor((fullSegmentRows * (hour - from)) / (until - from));
  return Array.from({ length: until - from }, (_, i) => from + i).map((partition) => {
    const firstRow = rowBefore(partition);
    return { partition, firstOrdinal: 1, firstRow, rows: rowBefore(partition + 1) - firstRow };
  });
}

function withEntries(manifest: Manifest, entries: readonly SegmentEntry[]): Manifest {
  const runs = entries.flatMap((entry) => entry.runs);
  return {
    ...manifest,
    number: manifest.number + 1,
    segments: [...manifest.segments, ...entries],
    nextOrdinals: [
      ...manifest.nextOrdinals,
      ...runs.map(({ partition, rows }) => [partition, rows + 1] as const),
    ],
    highestPartition: runs.at(-1)!.partition,
  };
}

import { randomFillSync } from 'node:crypto';
import { closeSync, ftruncateSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { NumberColumn } from '../../engine/columns/column.js';
import { filterBlockBytes, hashStrings } from '../../engine/kernels/value-filter.js';
import { bloomHeader, blockOfHash, isInBlock, type ValueHash } from '../../engine/parquet/bloom-filter.js';
import { openRealDirectory } from '../../engine/store/disk/real-directory.js';
import type { Manifest, Run, SegmentEntry } from '../../engine/store/manifest/manifest.js';
import { publishManifest, readNewestManifest } from '../../engine/store/manifest/manifest-file.js';
import { segmentFile } from '../../engine/store/manifest/commit.js';
import {
  gramFilterBytes,
  mayHaveAll,
  pieceBytes,
  pieceStoredBytesMax,
  planGramLookups,
  type GramFilterShape,
} from '../../engine/store/sealed/gram-filter.js';
import {
  decodeSummary,
  encodeSummary,
  filterBytes,
  noFilters,
  type GramFilterPlace,
  type ValueFilterPlace,
} from '../../engine/store/sealed/segment-filters.js';
import {
  buildValueFilter,
  isInSketch,
  joinSketches,
  type ValueFilter,
} from '../../engine/store/sealed/value-filter.js';
import { hourMs } from '../../engine/core/cursor.js';
import { rowGroupRowsMax, segmentRowGroupsMax } from '../../engine/core/limits.js';

/** Rows of a segment of maximum size. */
export const fullSegmentRows = rowGroupRowsMax * segmentRowGroupsMax;

/** Prefix of the names of the made-up files. */
export const madeUpName = 'made-up';

/** What will be searched for. The filters of the made-up row groups must not match these. */
export interface Needles {
  /** Index of the field in the schema, and whole values. */
  readonly ids: { readonly field: number; readonly values: readonly string[] };
  /** Index of the field in the schema, and parts of values: ASCII in lower case. */
  readonly texts: { readonly field: number; readonly values: readonly string[] };
}

/** What was made, and how many filters matched a needle by chance. */
export interface MadeUp {
  readonly segments: number;
  readonly rowGroups: number;
  /** Size of the written filters and summaries. */
  readonly bytes: number;
  /** Length of a gram in bytes, and the share of bits that are set in gram filters. */
  readonly gramBytes: number;
  readonly gramFill: number;
  /** For each value and each text, the number of filters that matched it by chance and were replaced by others. */
  readonly passed: { readonly ids: readonly number[]; readonly texts: readonly number[] };
}

/**
 * Adds segments of maximum size to the manifest of `agent`, in the hours after its only segment, which is real. Their value filters are
 * real filters of random values. Their gram filters are random bits, of the same size and density as those of the real segment. Their
 * summaries are real. The rest of each file, including the footer, is a hole, so that a question which reads more fails.
 */
export async function addMadeUpSegments(
  location: string,
  agent: string,
  needles: Needles,
  { count, hours }: { readonly count: number; readonly hours: number },
  onSegment: (index: number) => void,
): Promise<MadeUp> {
  const directory = await openRealDirectory(location, { create: false });
  const manifest = (await readNewestManifest(directory, agent))!;
  const model = manifest.segments[0]!;
  const first = model.runs.at(-1)!.partition + 1;
  const makers = new FilterMakers(needles, readGramFilter(join(location, agent), model, needles.texts.field));
  const entries: SegmentEntry[] = [];
  let bytes = 0;
  for (let index = 0; index < count; index++) {
    onSegment(index);
    const from = first + Math.floor((hours * index) / count);
    const until = first + Math.floor((hours * (index + 1)) / count);
    const file = segmentFile(madeUpName, index, from);
    const made = writeSegment(join(location, agent, file), model, needles, makers);
    const times = { timeMinMs: from * hourMs, timeMaxMs: until * hourMs - 1 };
    entries.push({ ...made, ...times, file, runs: runsOf(from, until) });
    bytes += made.valueFilterBytes + made.gramFilterBytes + made.summaryBytes;
  }
  await publishManifest(directory, agent, withEntries(manifest, entries));
  const { gramBytes } = makers.shape;
  const { gramFill, passed } = makers;
  return { segments: count, rowGroups: count * segmentRowGroupsMax, bytes, gramBytes, gramFill, passed };
}

/** Reads the gram filter of the first row group: its shape without trigrams, and the share of bits that are set. */
function readGramFilter(folder: string, entry: SegmentEntry, field: number): GramModel {
  const file = readFileSync(join(folder, entry.file));
  const summary = file.subarray(entry.footerOffset - entry.summaryBytes, entry.footerOffset);
  const filters = decodeSummary(summary, entry.rowGroupRows.length)!;
  const { gramBytes, gramBits, gramEighths, offset } = filters.of(field)!.grams[0]!;
  const shape = { gramBytes, gramBits, gramEighths, trigramBits: 0 };
  const stored = file.subarray(offset, offset + gramFilterBytes(shape));
  let set = 0;
  for (const byte of stored) for (let rest = byte; rest > 0; rest &= rest - 1) set++;
  return { shape, fill: set / (stored.length * 8) };
}

interface GramModel {
  readonly shape: GramFilterShape;
  readonly fill: number;
}

/** The density of random bits is exact to 2^-n, where n is this number. */
const densityBits = 6;

/** Makes filters that match none of the needles. */
class FilterMakers {
  readonly shape: GramFilterShape;
  readonly gramFill: number;
  readonly passed: { readonly ids: number[]; readonly texts: number[] };
  readonly #hashes: readonly ValueHash[];
  readonly #texts: readonly Uint8Array[];
  readonly #values = new BigInt64Array(rowGroupRowsMax);

  constructor({ ids, texts }: Needles, { shape, fill }: GramModel) {
    this.shape = shape;
    this.gramFill = Math.round(fill * 2 ** densityBits) / 2 ** densityBits;
    this.passed = { ids: ids.values.map(() => 0), texts: texts.values.map(() => 0) };
    this.#hashes = ids.values.map(hashOf);
    this.#texts = texts.values.map((text) => Buffer.from(text));
  }

  /** A filter of as many random values as a row group has. */
  valueFilter(): ValueFilter {
    for (;;) {
      const values = randomFillSync(this.#values);
      const column: NumberColumn = { kind: 'int64', length: values.length, values, validity: null };
      const filter = buildValueFilter(column, true)!;
      if (!count(this.passed.ids, this.#hashes, (hash) => seemsToHave(filter, hash))) return filter;
    }
  }

  /** A gram filter of random bits with its checksums. */
  gramFilter(): Uint8Array {
    for (;;) {
      const bits = this.#randomBits((2 ** (this.shape.gramBits - 3) * this.shape.gramEighths) / 8);
      const stored = withChecksums(bits);
      if (!count(this.passed.texts, this.#texts, (text) => this.#seemsToContain(stored, text))) return stored;
    }
  }

  /**
   * Random bits of density `gramFill`. The density is built from its binary digits, the last one first: OR with random bits for a 1, AND
   * for a 0.
   */
  #randomBits(bytes: number): Uint8Array {
    const bits = new Int32Array(bytes / 4);
    const random = new Int32Array(bytes / 4);
    for (let digit = 0; digit < densityBits; digit++) {
      randomFillSync(random);
      const adds = ((this.gramFill * 2 ** densityBits) >> digit) & 1;
      for (let i = 0; i < bits.length; i++)
        bits[i] = adds === 1 ? bits[i]! | random[i]! : bits[i]! & random[i]!;
    }
    return new Uint8Array(bits.buffer);
  }

  #seemsToContain(stored: Uint8Array, text: Uint8Array): boolean {
    return planGramLookups(this.shape, text).every((lookup) =>
      mayHaveAll(lookup, stored, lookup.piece.offset),
    );
  }
}

/** Counts for which things `isSo` is true. Returns whether it is for any. */
function count<T>(counts: number[], things: readonly T[], isSo: (thing: T) => boolean): boolean {
  const found = things.map(isSo);
  found.forEach((one, i) => (counts[i]! += one ? 1 : 0));
  return found.includes(true);
}

function withChecksums(bits: Uint8Array): Uint8Array {
  const stored = new Uint8Array((bits.length / pieceBytes) * pieceStoredBytesMax);
  const view = new DataView(stored.buffer);
  for (let from = 0, at = 0; from < bits.length; from += pieceBytes, at += pieceStoredBytesMax) {
    const piece = bits.subarray(from, from + pieceBytes);
    stored.set(piece, at);
    view.setUint32(at + pieceBytes, crc32(piece), true);
  }
  return stored;
}

function hashOf(id: string): ValueHash {
  const bytes = Buffer.from(id);
  const [low, high] = hashStrings(bytes, Uint32Array.of(0, bytes.length), 1);
  return { low: low!, high: high! };
}

/** Whether both the sketch and the Bloom filter match the value. */
function seemsToHave({ blocks, bytes, sketch }: ValueFilter, hash: ValueHash): boolean {
  const stripe = blockOfHash(hash, sketch.length / filterBlockBytes) * filterBlockBytes;
  if (!isInSketch(sketch, stripe, hash)) return false;
  return isInBlock(bytes, bloomHeader(blocks).length + blockOfHash(hash, blocks) * filterBlockBytes, hash);
}

/** Writes filters and the summary at the offsets that they have in a segment whose row groups are as large as those of the model. */
function writeSegment(
  path: string,
  model: SegmentEntry,
  { ids, texts }: Needles,
  makers: FilterMakers,
): Omit<SegmentEntry, 'file' | 'runs' | 'timeMinMs' | 'timeMaxMs'> {
  mkdirSync(dirname(path), { recursive: true });
  const handle = openSync(path, 'wx');
  try {
    const columnBytes = Math.ceil((model.footerOffset / model.rows) * rowGroupRowsMax);
    const valueFilters: ValueFilterPlace[] = [];
    const gramFilters: GramFilterPlace[] = [];
    const sketchesOf: Uint8Array[] = [];
    let offset = model.headerBytes;
    const write = (bytes: Uint8Array): number => {
      writeSync(handle, bytes, 0, bytes.length, offset);
      offset += bytes.length;
      return offset - bytes.length;
    };
    for (let rowGroup = 0; rowGroup < segmentRowGroupsMax; rowGroup++) {
      offset += columnBytes;
      gramFilters.push({ ...makers.shape, rowGroup, field: texts.field, offset: write(makers.gramFilter()) });
      const { blocks, bytes, sketch } = makers.valueFilter();
      valueFilters.push({ rowGroup, field: ids.field, offset: write(bytes), blocks });
      sketchesOf.push(sketch);
    }
    const joined = joinSketches(sketchesOf);
    const sketches = [{ field: ids.field, offset: write(joined.bytes), stripes: joined.stripes }];
    const places = { gramFilters, valueFilters, sketches };
    const summary = encodeSummary(places, segmentRowGroupsMax);
    write(summary);
    const footerBytes = model.footerBytes * segmentRowGroupsMax;
    ftruncateSync(handle, offset + footerBytes);
    return {
      ...model,
      bytes: offset + footerBytes,
      rows: fullSegmentRows,
      rowGroupRows: valueFilters.map(() => rowGroupRowsMax),
      footerOffset: offset,
      footerBytes,
      gramFilterBytes: filterBytes({ ...noFilters, gramFilters }, segmentRowGroupsMax),
      valueFilterBytes: filterBytes({ ...places, gramFilters: [] }, segmentRowGroupsMax),
      summaryBytes: summary.length,
      replaces: [],
    };
  } finally {
    closeSync(handle);
  }
}

/** The runs of a full segment, with the same number of rows in each hour. */
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

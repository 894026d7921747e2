import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, inflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openArchive } from '../../engine/index.js';
import { batchFromRows } from '../model/rows.js';
import { makeSchema } from '../../engine/core/schema.js';
import { bitmapAt, bloomHeaderBytes, filterBytes, gramBits, isInBlocks, xxh64 } from './tiny-filters.js';
import {
  dataPage,
  listAt,
  numberAt,
  pagesOf,
  plainStrings,
  structAt,
  textAt,
  ThriftCursor,
  unpackDelta,
  unpackHybrid,
  unpackLz4,
  type Thrift,
} from './tiny-parquet.js';

/** A small store, which is read by `docs/format.md` alone, without code of the engine. */

const page = readFileSync(join(import.meta.dirname, '../../docs/format.md'), 'utf8');
const agent = 'web';
const nowMs = Date.UTC(2026, 10, 20, 12);
const firstMs = Date.UTC(2026, 10, 20, 9);
const sealedRows = 3000;
const levels = ['info', 'warn', 'error'];

const messageOf = (i: number): string =>
  `Request ${(i * 2654435761) % 4294967296} of Zoë took ${(i * 7919) % 10007} steps`;
const levelOf = (i: number): string | null => (i % 10 === 9 ? null : levels[i % 3]!);

let folder = '';

interface SegmentJson {
  readonly file: string;
  readonly bytes: number;
  readonly rows: number;
  readonly runs: number[];
  readonly footerOffset: number;
  readonly footerBytes: number;
  readonly footerChecksum: number;
}

interface ManifestJson {
  readonly number: number;
  readonly segments: SegmentJson[];
  readonly hot: { file: string; committedBytes: number | null; foldedBytes: number; runs: number[] }[];
  readonly rejected: { file: string; bytes: number; lines: number; checksum: number }[];
  readonly loads: { nowMs: number; parts: object[]; runs: number[]; beyond?: object }[];
  readonly nextOrdinals: number[];
}

interface FooterJson {
  readonly schema: { name: string; type: string }[];
  readonly runs: number[][];
  readonly checksums: number[][];
  readonly gramFilters: [number, number, number, number, number, number, number][];
  readonly valueFilters: [rowGroup: number, field: number, offset: number, blocks: number][];
  readonly sketches: [field: number, offset: number, stripes: number][];
  readonly summaryBytes: number;
  readonly headerBytes: number;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'logstrata-format-'));
  const schema = makeSchema([
    { name: 'time', type: 'time' },
    { name: 'level', type: 'string' },
    { name: 'took', type: 'float' },
    { name: 'message', type: 'string', index: true },
  ]);
  const archive = await openArchive(folder, { mode: 'write', role: 'test', now: () => nowMs });
  const store = await archive.agent(agent, schema);
  const counters = { unreadableValues: 0, replacedBytes: 0, inputBytes: 1 };
  const rejected = { reason: 'does not match', file: 'web.log', offset: 7, line: Buffer.from('no record') };
  const session = await store.beginLoad();
  const rows = Array.from({ length: sealedRows }, (_, i) => {
    return [firstMs + i * 2000, levelOf(i), i / 4, messageOf(i)];
  });
  await session.append(batchFromRows(schema, rows), 0);
  await session.reject(rejected);
  const checkpoint = {
    headHash: 'ab'.repeat(32),
    headBytes: 9,
    offset: 9,
    contentHash: null,
    endsInLine: false,
    path: 'web.log',
    lastTimeMs: nowMs,
    records: 1,
    rejected: 1,
  };
  const parts = [{ from: null, until: checkpoint, writtenMs: nowMs }];
  await session.commit({ checkpoints: [checkpoint], counters, parts });
  for (const k of [0, 1]) {
    const late = batchFromRows(schema, [
      [nowMs - 10 + k, 'warn', null, `hot ${k}: logstrata:crc32=00000000;bytes=1`],
      [nowMs - 8 + k, null, 1.5, 'hot'],
    ]);
    const extras = { checkpoints: [checkpoint], rejected: k === 1 ? [rejected] : [], counters };
    await store.append(late, extras, 'live');
  }
  await archive.close();
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function fileOf(path: string): Buffer {
  return readFileSync(join(folder, agent, path));
}

function newestManifest(): { header: string[]; json: Buffer; manifest: ManifestJson; start: string } {
  const name = readdirSync(join(folder, agent))
    .filter((file) => /^manifest-\d{16}$/.test(file))
    .sort()
    .at(-1)!;
  const bytes = fileOf(name);
  const lineEnd = bytes.indexOf(10);
  const line = bytes.toString('latin1', 0, lineEnd);
  const json = bytes.subarray(lineEnd + 1);
  const manifest = JSON.parse(json.toString()) as ManifestJson;
  expect(manifest.number).toBe(Number(name.slice('manifest-'.length)));
  return { header: line.split(' '), json, manifest, start: line.slice(0, line.lastIndexOf(' ') + 1) };
}

function hex(checksum: number): string {
  return checksum.toString(16).padStart(8, '0');
}

function allKeys(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(allKeys);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [key, ...allKeys(inner)]);
}

/** Keys that the page does not name in code quotes. */
function unnamed(value: unknown): string[] {
  return [...new Set(allKeys(value))].filter((key) => !page.includes(`\`${key}\``));
}

describe('manifest', () => {
  it('begins with a line that states length and checksum', () => {
    const { header, json, start } = newestManifest();
    expect(header).toEqual([
      'logstrata-manifest',
      '5',
      String(json.length),
      hex(crc32(json, crc32(Buffer.from(start)))),
    ]);
  });

  it('has no key that the page does not explain', () => {
    const { manifest } = newestManifest();
    expect(allKeys(manifest)).toContain('footerChecksum');
    expect(allKeys(manifest)).toContain('headHash');
    expect(unnamed(manifest)).toEqual([]);
  });

  it('names every file, and counts every ordinal', () => {
    const { manifest } = newestManifest();
    const listed = readdirSync(join(folder, agent), { recursive: true })
      .map(String)
      .filter((path) => /^(dt=|hot|rejected).*\./.test(path))
      .sort();
    const named = [...manifest.segments, ...manifest.hot, ...manifest.rejected].map(({ file }) => file);
    expect(named.sort()).toEqual(listed);
    const records = manifest.nextOrdinals.filter((_, i) => i % 2 === 1).map((next) => next - 1);
    expect(records.reduce((a, b) => a + b)).toBe(sealedRows + 4);
  });
});

/** The whole messages of a hot file, each with its metadata text and body. */
function hotMessages(bytes: Buffer): { metadata: string; body: Buffer }[] {
  const messages: { metadata: string; body: Buffer }[] = [];
  for (let at = 0; at < bytes.length;) {
    expect(bytes.readInt32LE(at)).toBe(-1);
    const metadataBytes = bytes.readInt32LE(at + 4);
    expect(metadataBytes % 8).toBe(0);
    const metadata = bytes.toString('latin1', at + 8, at + 8 + metadataBytes);
    const markAt = metadata.indexOf('logstrata:crc32=');
    const seal = /^logstrata:crc32=([0-9a-f]{8});bytes=(\d{12});offset=(\d{15})/.exec(
      metadata.slice(markAt),
    )!;
    const length = Number(seal[2]);
    expect(Number(seal[3])).toBe(at);
    const message = Buffer.from(bytes.subarray(at, at + length));
    message.write('00000000', 8 + markAt + 'logstrata:crc32='.length);
    expect(hex(crc32(message))).toBe(seal[1]);
    messages.push({ metadata, body: message.subarray(8 + metadataBytes) });
    at += length;
  }
  return messages;
}

describe('hot segment', () => {
  it('is a schema and batches, each with a checksum over its whole message', () => {
    const { manifest } = newestManifest();
    expect(manifest.hot).toHaveLength(1);
    const bytes = fileOf(manifest.hot[0]!.file);
    expect(manifest.hot[0]!.committedBytes).toBe(bytes.length);
    const messages = hotMessages(bytes);
    expect(messages).toHaveLength(3);
    expect(messages[0]!.body).toHaveLength(0);
    expect(messages[0]!.metadata).toContain('logstrata:format');
    const ordinals = new Map<number, number>();
    const runs: number[] = [];
    for (const { metadata, body } of messages.slice(1)) {
      expect(metadata).toContain('logstrata:batch');
      const jsonAt = metadata.indexOf('{"runs":');
      const length = Buffer.from(metadata.slice(jsonAt - 4, jsonAt), 'latin1').readUInt32LE(0);
      const batch = JSON.parse(Buffer.from(metadata.slice(jsonAt, jsonAt + length), 'latin1').toString()) as {
        runs: number[];
      };
      expect(unnamed(batch)).toEqual([]);
      runs.push(...batch.runs);
      const [partition, firstOrdinal, rows] = batch.runs as [number, number, number];
      expect(body.readBigInt64LE(0)).toBe((BigInt(partition) << 40n) | BigInt(firstOrdinal));
      expect(body.readBigInt64LE(8) - body.readBigInt64LE(0)).toBe(1n);
      ordinals.set(partition, firstOrdinal + rows);
    }
    // The runs in the manifest are joined where the positions of rows are contiguous.
    const rows = (flat: readonly number[]): number =>
      flat.reduce((sum, value, i) => sum + (i % 3 === 2 ? value : 0), 0);
    expect(rows(manifest.hot[0]!.runs)).toBe(rows(runs));
    expect(manifest.hot[0]!.runs.slice(0, 2)).toEqual(runs.slice(0, 2));
    const hourMs = 3_600_000;
    const sums = new Map<number, bigint>();
    for (let i = 0; i < sealedRows; i++) {
      const timeMs = firstMs + i * 2000;
      const partition = Math.floor(timeMs / hourMs);
      sums.set(partition, (sums.get(partition) ?? 0n) + BigInt(timeMs % hourMs) ** 2n);
    }
    const given = [...sums].flatMap(([partition, sum]) => [partition, 1, 1800, Number(sum % 2n ** 32n)]);
    given[6] = sealedRows - 1800;
    expect(manifest.loads).toMatchObject([{ nowMs, runs: given, parts: [{ from: null, writtenMs: nowMs }] }]);
    const { nextOrdinals } = manifest;
    for (const [partition, next] of ordinals) {
      expect(nextOrdinals[nextOrdinals.indexOf(partition) + 1]).toBe(next);
    }
  });
});

interface Segment {
  readonly entry: SegmentJson;
  readonly bytes: Buffer;
  readonly footer: Thrift;
  readonly keyValues: Map<string, string>;
  readonly json: FooterJson;
}

function readSegment(): Segment {
  const entry = newestManifest().manifest.segments[0]!;
  const bytes = fileOf(entry.file);
  const footerBytes = bytes.subarray(entry.footerOffset, entry.footerOffset + entry.footerBytes);
  const footer = new ThriftCursor(footerBytes, 0).struct();
  const keyValues = new Map(
    listAt<Thrift>(footer, 5).map((pair) => [textAt(pair, 1), textAt(pair, 2)] as const),
  );
  const json = JSON.parse(keyValues.get('logstrata.segment')!) as FooterJson;
  return { entry, bytes, footer, keyValues, json };
}

function chunkOf(segment: Segment, rowGroup: number, column: number): { bytes: Buffer; offset: number } {
  const group = listAt<Thrift>(segment.footer, 4)[rowGroup]!;
  const metadata = structAt(listAt<Thrift>(group, 1)[column]!, 3);
  const offset = numberAt(metadata, metadata.has(11) ? 11 : 9);
  return { bytes: segment.bytes.subarray(offset, offset + numberAt(metadata, 7)), offset };
}

describe('sealed segment', () => {
  it('has a footer whose checksum the manifest keeps', () => {
    const { entry, bytes, footer, keyValues } = readSegment();
    const footerBytes = bytes.subarray(entry.footerOffset);
    expect(footerBytes).toHaveLength(entry.footerBytes);
    expect(bytes).toHaveLength(entry.bytes);
    expect(crc32(footerBytes)).toBe(entry.footerChecksum);
    expect(footerBytes.readUInt32LE(footerBytes.length - 8)).toBe(footerBytes.length - 8);
    expect(footerBytes.toString('latin1', footerBytes.length - 4)).toBe('PAR1');
    expect(bytes.toString('latin1', 0, 4)).toBe('PAR1');
    expect(numberAt(footer, 1)).toBe(2);
    expect(page).toContain(`\`${textAt(footer, 6)}\``);
    expect(keyValues.get('logstrata.format')).toBe('2');
    expect(unnamed(JSON.parse(keyValues.get('logstrata.segment')!))).toEqual([]);
  });

  it('has a checksum for every chunk, and chunks, filters and footer join without gaps', () => {
    const segment = readSegment();
    const places: [number, number][] = [];
    segment.json.checksums.forEach((checksums, rowGroup) => {
      checksums.forEach((checksum, column) => {
        const { bytes, offset } = chunkOf(segment, rowGroup, column);
        expect(crc32(bytes)).toBe(checksum);
        places.push([offset, bytes.length]);
        for (const { header, body } of pagesOf(bytes)) expect(crc32(body) | 0).toBe(numberAt(header, 4));
      });
    });
    for (const [, , offset, , gramBits, trigramBits] of segment.json.gramFilters) {
      places.push([offset, filterBytes(gramBits) + filterBytes(trigramBits)]);
    }
    for (const [, , offset, blocks] of segment.json.valueFilters) {
      const headerBytes = bloomHeaderBytes(segment.bytes, offset);
      places.push([offset, headerBytes + blocks * 32 + 4 + Math.ceil((blocks * 32) / 4096) * 4]);
    }
    expect(segment.json.valueFilters).toHaveLength(1);
    expect(segment.json.sketches).toEqual([]);
    places.push([segment.entry.footerOffset - segment.json.summaryBytes, segment.json.summaryBytes]);
    places.sort((a, b) => a[0] - b[0]);
    let end = 4 + segment.json.headerBytes;
    for (const [offset, length] of places) {
      expect(offset).toBe(end);
      end += length;
    }
    expect(end).toBe(segment.entry.footerOffset);
  });

  it('has a header with the same values as the manifest, and the offsets of its row groups', () => {
    const segment = readSegment();
    const { bytes, json, entry } = segment;
    expect(bytes.toString('latin1', 4, 8)).toBe('LSEG');
    const headerBytes = bytes.readUInt32LE(8);
    expect(headerBytes).toBe(json.headerBytes);
    const end = 4 + headerBytes;
    expect(end % 512).toBe(0);
    expect(bytes.readUInt32LE(end - 4)).toBe(crc32(bytes.subarray(4, end - 4)));
    const recordEnd = 16 + bytes.readUInt32LE(12);
    expect(bytes.subarray(recordEnd, end - 4).every((byte) => byte === 0)).toBe(true);
    const record = JSON.parse(inflateRawSync(bytes.subarray(16, recordEnd)).toString()) as Record<
      string,
      unknown
    >;
    expect(unnamed(record)).toEqual([]);
    const { file: _, replaces: __, ...facts } = entry as SegmentJson & { replaces: string[] };
    const sums = Buffer.alloc(4 * segment.json.schema.length);
    json.checksums[0]!.slice(1).forEach((checksum, i) => sums.writeUInt32LE(checksum, 4 * i));
    expect(record).toEqual({
      ...facts,
      format: 2,
      schema: { fields: json.schema },
      rowGroupOffsets: [chunkOf(segment, 0, 1).offset],
      rowGroupChecksums: [crc32(sums)],
    });
  });

  it('has the positions of its runs in _cursor', () => {
    const segment = readSegment();
    const [head, ...rest] = pagesOf(chunkOf(segment, 0, 0).bytes);
    expect(rest).toEqual([]);
    expect(numberAt(structAt(head!.header, 8), 4)).toBe(5);
    const { levels: none, values } = dataPage(head!);
    expect(none).toHaveLength(0);
    const expected: bigint[] = [];
    const { runs } = segment.entry;
    for (let i = 0; i < runs.length; i += 3) {
      for (let k = 0; k < runs[i + 2]!; k++)
        expected.push((BigInt(runs[i]!) << 40n) | BigInt(runs[i + 1]! + k));
    }
    expect(unpackDelta(values).values).toEqual(expected);
    expect(
      segment.json.runs.map(([partition, ordinal, , rows]) => [partition, ordinal, rows]).flat(),
    ).toEqual(runs);
  });

  it('has values in the stated encodings', () => {
    const segment = readSegment();
    const [dictionary, codes] = pagesOf(chunkOf(segment, 0, 2).bytes);
    const entries = plainStrings(unpackLz4(dictionary!.body, numberAt(dictionary!.header, 2)));
    expect(entries).toEqual(levels);
    const level = dataPage(codes!);
    const present = unpackHybrid(level.levels, 1, sealedRows);
    const read = unpackHybrid(level.values.subarray(1), level.values[0]!, present.filter(Boolean).length);
    let next = 0;
    const values = present.map((bit) => (bit === 1 ? entries[read[next++]!]! : null));
    expect(values).toEqual(Array.from({ length: sealedRows }, (_, i) => levelOf(i)));

    const [messages] = pagesOf(chunkOf(segment, 0, 4).bytes);
    const encoding = numberAt(structAt(messages!.header, 8), 4);
    const { values: stored } = dataPage(messages!);
    const texts = encoding === 0 ? plainStrings(stored) : splitByLengths(stored);
    expect(texts).toEqual(Array.from({ length: sealedRows }, (_, i) => messageOf(i)));
  });
});

/** DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes. */
function splitByLengths(stored: Buffer): string[] {
  const { values, end } = unpackDelta(stored);
  let at = end;
  return values.map((length) => {
    at += Number(length);
    return stored.toString('utf8', at - Number(length), at);
  });
}

describe('gram filter', () => {
  it('has every gram of every value, and few others', () => {
    const { bytes, json } = readSegment();
    const ofMessage = json.gramFilters.find(([, field]) => json.schema[field]!.name === 'message')!;
    const [rowGroup, , offset, gramBytes, bits, trigramBits, eighths] = ofMessage;
    expect(rowGroup).toBe(0);
    expect(eighths).toBe(8);
    const grams = bitmapAt(bytes, offset, bits);
    const trigrams = bitmapAt(bytes, offset + filterBytes(bits), trigramBits);
    const isSet = (bitmap: Buffer, bit: number): boolean => ((bitmap[bit >> 3]! >> (bit & 7)) & 1) === 1;
    for (let i = 0; i < sealedRows; i++) {
      // Folding these values is the same as converting them to lower case.
      const folded = Buffer.from(messageOf(i).toLowerCase());
      expect(gramBits(folded, gramBytes, bits).filter((bit) => !isSet(grams, bit))).toEqual([]);
      expect(gramBits(folded, 3, trigramBits).filter((bit) => !isSet(trigrams, bit))).toEqual([]);
    }
    const missed = ['xylophone quartet', 'segmentation fault', 'permission denied'].filter((needle) =>
      gramBits(Buffer.from(needle), gramBytes, bits).some((bit) => !isSet(grams, bit)),
    );
    expect(missed).toHaveLength(3);
  });
});

describe('value filter', () => {
  it('is at the offset in the footer, with its checksums, and contains every value and few others', () => {
    const { bytes, footer, json } = readSegment();
    const [rowGroup, field, offset, blocks] = json.valueFilters[0]!;
    expect(json.schema[field]!.name).toBe('message');
    const group = listAt<Thrift>(footer, 4)[rowGroup]!;
    const metadata = structAt(listAt<Thrift>(group, 1)[field + 1]!, 3);
    expect(numberAt(metadata, 14)).toBe(offset);
    const headerBytes = bloomHeaderBytes(bytes, offset);
    expect(numberAt(metadata, 15)).toBe(headerBytes + blocks * 32);
    const header = bytes.subarray(offset, offset + headerBytes);
    expect(numberAt(new ThriftCursor(header, 0).struct(), 1)).toBe(blocks * 32);
    const bitset = bytes.subarray(offset + headerBytes, offset + headerBytes + blocks * 32);
    const checksums = bytes.subarray(offset + headerBytes + blocks * 32);
    expect(checksums.readUInt32LE(0)).toBe(crc32(header));
    for (let i = 0; i * 4096 < bitset.length; i++)
      expect(checksums.readUInt32LE(4 + 4 * i)).toBe(crc32(bitset.subarray(i * 4096, (i + 1) * 4096)));
    const mayHold = (text: string): boolean => isInBlocks(bitset, xxh64(Buffer.from(text)));
    for (let i = 0; i < sealedRows; i++) if (!mayHold(messageOf(i))) expect.fail(`message ${i} is missing`);
    const others = Array.from({ length: 1000 }, (_, i) => messageOf(sealedRows + i));
    expect(others.filter(mayHold).length).toBeLessThan(30);
  });

  it('is found through the summary, like the gram filters', () => {
    const { bytes, entry, json } = readSegment();
    const summary = bytes.subarray(entry.footerOffset - json.summaryBytes, entry.footerOffset);
    expect(summary.toString('latin1', 0, 4)).toBe('LSUM');
    const rows = summary.readUInt32LE(4);
    expect(summary).toHaveLength(12 + rows * 24 + 4);
    expect(summary.readUInt32LE(8)).toBe(json.checksums.length);
    expect(summary.readUInt32LE(summary.length - 4)).toBe(crc32(summary.subarray(0, -4)));
    const found = Array.from({ length: rows }, (_, i) => {
      const at = 12 + i * 24;
      const offset = Number(summary.readBigUInt64LE(at + 12));
      return [...[0, 4, 8].map((by) => summary.readUInt32LE(at + by)), offset, summary.readUInt32LE(at + 20)];
    });
    expect(found).toEqual([
      ...json.valueFilters.map(([rowGroup, field, offset, blocks]) => [2, field, rowGroup, offset, blocks]),
      ...json.gramFilters.map(([rowGroup, field, offset, gramBytes, gramBits, trigramBits]) => {
        return [1, field, rowGroup, offset, gramBytes * 65536 + gramBits * 256 + trigramBits];
      }),
    ]);
  });
});

describe('rejected lines', () => {
  it('are JSON Lines with the checksum of the manifest', () => {
    const { rejected } = newestManifest().manifest;
    expect(rejected).toHaveLength(2);
    for (const { file, bytes, lines, checksum } of rejected) {
      const content = fileOf(file).subarray(0, bytes);
      expect(crc32(content)).toBe(checksum);
      const parsed = content.toString().trimEnd().split('\n');
      expect(parsed).toHaveLength(lines);
      expect(JSON.parse(parsed[0]!)).toEqual({
        reason: 'does not match',
        file: 'web.log',
        offset: 7,
        line: 'no record',
      });
    }
  });
});

describe('lock', () => {
  it('is a socket that .writer leads to while the lock is held, and is gone afterwards', async () => {
    const place = join(folder, '.lock');
    expect(readdirSync(folder)).not.toContain('.writer');
    expect(readdirSync(place)).toEqual([]);
    const archive = await openArchive(folder, { mode: 'write', role: 'test' });
    const [name] = readdirSync(place);
    expect(name).toMatch(new RegExp(`^[0-9a-f]{8}-test-${process.pid}$`));
    expect(readlinkSync(join(folder, '.writer'))).toBe(`.lock/${name}`);
    expect(lstatSync(join(place, name!)).isSocket()).toBe(true);
    expect(lstatSync(place).mode & 0o777).toBe(0o700);
    await archive.close();
  });
});

import { crc32 } from 'node:zlib';
import { expect, it } from 'vitest';
import { readFoundSegment } from '../../../engine/maintenance/examination.js';
import { batchFromRows } from '../../model/rows.js';
import type { Schema } from '../../../engine/core/schema.js';
import { MemoryDirectory } from '../../storage-doubles/memory-directory.js';
import type { SegmentEntry } from '../../../engine/store/manifest/manifest.js';
import { fileBytes, openSegment, sealBatches } from '../../parquet/segment-sample.js';

const schema: Schema = { fields: [{ name: 'message', type: 'string' }] };

/** A segment whose footer names the format `digit`, and that has no header with another format. */
async function segmentOfFormat(
  digit: string,
): Promise<{ directory: MemoryDirectory; entry: SegmentEntry; path: string }> {
  const path = 'web/a.parquet';
  const written = new MemoryDirectory();
  await written.makeDirectory('web');
  const entry = await sealBatches(written, path, schema, [batchFromRows(schema, [['one'], ['two']])], 'lz4');
  const bytes = await fileBytes(written, path);
  const key = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf('logstrata.format');
  const valueAt = key + 'logstrata.format'.length + 2;
  expect(String.fromCharCode(bytes[valueAt]!)).toBe('2');
  bytes[valueAt] = digit.charCodeAt(0);
  bytes.fill(0, 4, 4 + entry.headerBytes);
  const directory = new MemoryDirectory();
  await directory.makeDirectory('web');
  const file = await directory.create(path);
  await file.write(0, bytes);
  return { directory, entry: { ...entry, footerChecksum: crc32(bytes.subarray(entry.footerOffset)) }, path };
}

it.each([
  ['3', 'was written by a newer version of logstrata: it has segment format 3, but this version knows 2'],
  [
    '1',
    'was written by a version from before the first release: it has segment format 1, but this version knows 2. Export',
  ],
])('a segment of format %s is not reported as damaged, by a query or by a repair', async (digit, reason) => {
  const { directory, entry, path } = await segmentOfFormat(digit);
  const error = { code: 'unsupported', message: expect.stringContaining(`${path} ${reason}`) as string };
  await expect((await openSegment(directory, entry, schema)).footer()).rejects.toMatchObject(error);
  await expect(readFoundSegment(directory, 'web', 'a.parquet')).rejects.toMatchObject(error);
});

it('a segment of a format that no version writes is reported as damaged', async () => {
  const { directory, entry } = await segmentOfFormat('x');
  const error = { code: 'damaged', message: expect.stringContaining("the segment's format is x") as string };
  await expect((await openSegment(directory, entry, schema)).footer()).rejects.toMatchObject(error);
  await expect(readFoundSegment(directory, 'web', 'a.parquet')).rejects.toMatchObject(error);
});

import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { headIdentity, sha256, tailBytesMax } from '../../../agents/sources/source-position.js';
import { candidatesOf, openAtKnownEnd } from '../../../agents/sources/source-cursor.js';
import { ContentHash } from '../../../engine/kernels/xxh64.js';
import type { Checkpoint } from '../../../engine/store/manifest/manifest.js';
import { gzip, zstd } from './compressed.js';
import { temporaryFolder } from './temporary.js';

function contentHashOf(content: string): string {
  const hash = new ContentHash();
  hash.update(Buffer.from(content));
  return hash.digest();
}

function checkpointOf(content: string, part: Partial<Checkpoint> = {}): Checkpoint {
  const bytes = Buffer.from(content);
  return {
    ...headIdentity(bytes.subarray(0, 1024)),
    offset: bytes.length,
    contentHash: contentHashOf(content),
    tailHash: sha256(bytes.subarray(-tailBytesMax)),
    endsInLine: false,
    path: '/some/log',
    lastTimeMs: null,
    records: 1,
    rejected: 0,
    ...part,
  };
}

/** The offset at which reading continues, the checkpoint for it, and the rest of the content. */
async function open(path: string, checkpoints: readonly Checkpoint[]) {
  const content = await openAtKnownEnd(path, checkpoints, () => {});
  const { known } = content;
  const offset = content.offset;
  const rest: Buffer[] = [];
  for (let piece = await content.next(); piece !== null; piece = await content.next()) {
    content.take(piece);
    rest.push(Buffer.from(piece));
  }
  await content.close();
  return { offset, known, rest: Buffer.concat(rest).toString(), digest: content.digest() };
}

async function fileWith(content: string | Uint8Array): Promise<string> {
  const path = join(await temporaryFolder(), 'log');
  await writeFile(path, content);
  return path;
}

const banner = '# a banner that many files begin with\n'.repeat(50);
const lines = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, i) => `line ${from + i} of the log\n`).join('');

describe('a file is identified by its content', () => {
  test('up to the end of its stored part, even if it has been compressed since', async () => {
    const stored = checkpointOf(lines(0, 5000));
    for (const content of [lines(0, 5000), gzip(lines(0, 5000)), zstd(lines(0, 2000), lines(2000, 5000))]) {
      const found = await open(await fileWith(content), [checkpointOf('other'), stored]);
      expect(found).toMatchObject({
        offset: stored.offset,
        known: stored,
        rest: '',
        digest: contentHashOf(lines(0, 5000)),
      });
    }
  });

  test('and read on after that end if it has grown', async () => {
    const stored = checkpointOf(lines(0, 5000));
    for (const content of [lines(0, 9000), gzip(lines(0, 9000)), zstd(lines(0, 9000))]) {
      const found = await open(await fileWith(content), [stored]);
      expect(found).toMatchObject({ offset: stored.offset, rest: lines(5000, 9000) });
      expect(found.digest).toBe(contentHashOf(lines(0, 9000)));
    }
  });

  test('even if the stored part was shorter than the hashed beginning', async () => {
    const stored = checkpointOf(lines(0, 3));
    const path = await fileWith(lines(0, 3));
    await appendFile(path, lines(3, 400));
    expect(await open(path, [stored])).toMatchObject({ known: stored, rest: lines(3, 400) });
  });

  test('and not only by its beginning: files that share their first kilobytes are different files', async () => {
    const one = checkpointOf(banner + lines(0, 100));
    const other = banner + lines(500, 2000);
    for (const content of [other, gzip(other), zstd(other)]) {
      const found = await open(await fileWith(content), [one]);
      expect(found).toMatchObject({ offset: 0, known: null });
      expect(found.rest.length).toBe(other.length);
    }
  });

  test('by the longest matching checkpoint, even if longer ones do not match', async () => {
    const short = checkpointOf(banner + lines(0, 10));
    const middle = checkpointOf(banner + lines(0, 200));
    const alike = checkpointOf(banner + lines(0, 250) + 'something else\n');
    const longer = checkpointOf(banner + lines(0, 20_000));
    const content = banner + lines(0, 2000);
    for (const form of [content, gzip(content)]) {
      const found = await open(await fileWith(form), [longer, alike, short, middle]);
      expect(found).toMatchObject({ known: middle, rest: lines(200, 2000) });
      expect(found.digest).toBe(contentHashOf(content));
    }
  });

  test('by its beginning and its last bytes if no hash of the content was stored', async () => {
    const live = checkpointOf(lines(0, 300), { contentHash: null });
    expect(await open(await fileWith(lines(0, 400)), [live])).toMatchObject({
      known: live,
      rest: lines(300, 400),
    });
    expect(await open(await fileWith(lines(0, 200)), [live])).toMatchObject({ known: null, offset: 0 });
    const changed = lines(0, 400).replace('line 299', 'line 2gg');
    expect(await open(await fileWith(changed), [live])).toMatchObject({ known: null, offset: 0 });
    expect(await open(await fileWith(gzip(lines(0, 200))), [live])).toMatchObject({
      known: null,
      rest: lines(0, 200),
    });
  });

  test('so that one different byte in the middle makes another file', async () => {
    const changed = lines(0, 5000).replace('line 3000', 'line 3OOO');
    expect(await open(await fileWith(changed), [checkpointOf(lines(0, 5000))])).toMatchObject({
      known: null,
      offset: 0,
    });
  });

  test('but never if it is empty', async () => {
    expect(await open(await fileWith(''), [checkpointOf('')])).toMatchObject({ known: null, rest: '' });
    expect(candidatesOf([checkpointOf('')], Buffer.from('x'))).toEqual([]);
  });
});

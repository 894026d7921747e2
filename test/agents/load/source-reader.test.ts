import { appendFile, mkdir, truncate, writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { caseCount, fc } from '../../cases.js';
import { SourceCursor } from '../../../agents/sources/source-cursor.js';
import { StreamSource, type ByteSource } from '../../../agents/sources/byte-source.js';
import { gzip, skippableFrame, zstd } from './compressed.js';
import { temporaryFolder } from './temporary.js';

async function readAll(source: ByteSource): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (let piece = await source.next(); piece !== null; piece = await source.next())
    pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
}

async function contentOfFile(
  bytes: Uint8Array,
  name = 'log',
): Promise<{ content: Buffer; compression: string }> {
  const path = join(await temporaryFolder(), name);
  await writeFile(path, bytes);
  const reader = await SourceCursor.open(path);
  try {
    return { content: await readAll(reader), compression: reader.compression };
  } finally {
    await reader.close();
  }
}

/** A zstd frame with a checksum, as the zstd command writes it. */
const checksummed = Buffer.from('KLUv/QRYqQAAb25lIGxpbmUKYW5kIGFub3RoZXIKXmZA/w==', 'base64');

const large = Buffer.concat(
  Array.from({ length: 40 }, (_, i) => Buffer.from(`line ${i} ${randomBytes(40_000).toString('hex')}\n`)),
);

describe('the content of a file', () => {
  test('is the same if it is read in pieces, up to given offsets, or by both in turn', async () => {
    const path = join(await temporaryFolder(), 'plain');
    await writeFile(path, large);
    await fc.assert(
      fc.asyncProperty(
        // One of them is large, because small ones alone would take a million turns.
        fc.integer({ min: 100_000, max: 700_000 }),
        fc.array(fc.nat(700_000), { maxLength: 7 }),
        fc.nat(2000),
        async (largeSize, others, peeked) => {
          const sizes = [...others, largeSize];
          const content = await SourceCursor.open(path);
          const head = (await content.peek(peeked)).slice();
          expect(large.subarray(0, peeked).equals(head)).toBe(true);
          const pieces: Buffer[] = [];
          for (let turn = 0; ; turn++) {
            const size = sizes[turn % sizes.length]!;
            const target = Buffer.alloc(size);
            // A size of 0 means one piece.
            const piece =
              size === 0 ? await content.next() : target.subarray(0, await content.nextInto!(target));
            if (piece === null || piece.length === 0) break;
            pieces.push(Buffer.from(piece));
          }
          expect(Buffer.concat(pieces).equals(large)).toBe(true);
          expect(content.bytesTaken).toBe(large.length);
          await content.close();
        },
      ),
      { numRuns: caseCount(6) },
    );
  });

  test('is the same uncompressed, as gzip and as zstd, recognised by the first bytes and not by the name', async () => {
    for (const [bytes, name, expected] of [
      [large, 'a.gz', 'none'],
      [gzip(large), 'a.zst', 'gzip'],
      [zstd(large), 'a.log', 'zstd'],
    ] as const) {
      const { content, compression } = await contentOfFile(bytes, name);
      expect(compression).toBe(expected);
      expect(content.equals(large)).toBe(true);
    }
    expect((await contentOfFile(checksummed)).content.toString()).toBe('one line\nand another\n');
  });

  test('continues across gzip members and zstd frames, including empty ones, without skippable frames', async () => {
    const text = Buffer.from('one\ntwo\nthree\n');
    expect((await contentOfFile(gzip('one\n', '', 'two\n', 'three\n'))).content).toEqual(text);
    expect((await contentOfFile(zstd('one\n', '', 'two\n', 'three\n'))).content).toEqual(text);
    const skipping = Buffer.concat([
      skippableFrame(300),
      zstd('one\ntwo\n'),
      skippableFrame(0),
      zstd('three\n'),
    ]);
    expect(await contentOfFile(skipping)).toEqual({ content: text, compression: 'zstd' });
    const many = Array.from({ length: 3000 }, (_, i) => `line ${i}\n`);
    expect((await contentOfFile(zstd(...many))).content.toString()).toBe(many.join(''));
    expect((await contentOfFile(gzip(...many))).content.toString()).toBe(many.join(''));
  });

  test('is complete after a very high compression', async () => {
    const zeros = Buffer.alloc(50_000_000, 'a');
    expect((await contentOfFile(zstd(zeros))).content.equals(zeros)).toBe(true);
    expect((await contentOfFile(gzip(zeros))).content.equals(zeros)).toBe(true);
  });

  test('may be empty, in any format', async () => {
    for (const bytes of [Buffer.alloc(0), gzip(''), zstd('')]) {
      expect((await contentOfFile(bytes)).content.length).toBe(0);
    }
  });

  test('does not include the padding after the last gzip member', async () => {
    expect((await contentOfFile(Buffer.concat([gzip('one\n'), Buffer.alloc(1000)]))).content.toString()).toBe(
      'one\n',
    );
    const padded = Buffer.concat([gzip(large), Buffer.alloc(600_000)]);
    expect((await contentOfFile(padded)).content.equals(large)).toBe(true);
  });
});

describe('damage', () => {
  test('truncation of a compressed file at any byte is an error that names the file and the last byte read', async () => {
    for (const whole of [gzip('one line\nand another\n'), zstd('one line\nand another\n'), checksummed]) {
      for (let length = 4; length < whole.length; length++) {
        await expect(
          contentOfFile(whole.subarray(0, length), 'cut'),
          `${length} of ${whole.length}`,
        ).rejects.toMatchObject({
          name: 'SourceError',
          code: 'damaged',
          path: expect.stringMatching(/\/cut$/),
          offset: length,
          message: expect.stringMatching(/\/cut is a truncated (gzip|zstd) file: it ends at byte \d+/),
        });
      }
    }
  });

  test('a large file cut anywhere is an error', async () => {
    for (const whole of [gzip(large), zstd(large), gzip(large, large), zstd(large, large)]) {
      for (const part of [0.01, 0.3, 0.5003, 0.77, 0.999]) {
        const length = Math.floor(whole.length * part);
        const failure = { code: 'damaged', offset: length };
        await expect(contentOfFile(whole.subarray(0, length)), `${length}`).rejects.toMatchObject(failure);
      }
    }
  });

  test('a flipped bit of a checksummed file never gives other content', async () => {
    const content = Buffer.from('one line\nand another\n');
    for (const whole of [gzip(content), checksummed]) {
      for (let bit = 0; bit < whole.length * 8; bit++) {
        const damaged = Buffer.from(whole);
        damaged[bit >> 3]! ^= 1 << (bit & 7);
        const read = await contentOfFile(damaged).catch((error: unknown) => error);
        if (!(read instanceof Error)) {
          const { compression, content: found } = read as Awaited<ReturnType<typeof contentOfFile>>;
          // Without its first bytes, a file is not recognised as compressed; a timestamp or a system name may change unnoticed.
          expect(compression === 'none' ? bit < 32 : found.equals(content)).toBe(true);
        } else {
          expect(read).toMatchObject({ name: 'SourceError', path: expect.any(String) });
        }
      }
    }
  });

  test('bytes after the end are an error, and are not ignored', async () => {
    const garbage = Buffer.from('plain text');
    for (const whole of [gzip('one\n'), zstd('one\n')]) {
      await expect(contentOfFile(Buffer.concat([whole, garbage]))).rejects.toMatchObject({ code: 'damaged' });
    }
    const afterPadding = Buffer.concat([gzip('one\n'), Buffer.alloc(300_000), garbage]);
    await expect(contentOfFile(afterPadding)).rejects.toMatchObject({
      code: 'damaged',
      offset: afterPadding.length - 10,
    });
  });

  test('a wrong checksum of a zstd frame is reported as such', async () => {
    const wrong = Buffer.from(checksummed);
    wrong[wrong.length - 1]! ^= 1;
    await expect(contentOfFile(wrong, 'bad.zst')).rejects.toThrow(
      /bad\.zst is a zstd file that can't be read: the checksum does not match/,
    );
  });

  test('a zstd frame with too large a window or with a dictionary is refused', async () => {
    // Window descriptor 0x90: 2^28 bytes (RFC 8878, 3.1.1.1.2); a raw block of 5 bytes.
    const wide = Buffer.from([
      0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x90, 0x29, 0x00, 0x00, 0x68, 0x65, 0x6c, 0x6c, 0x6f,
    ]);
    await expect(contentOfFile(wide)).rejects.toThrow(/window of more than 128 MiB.*--long=31/);
    // 0x88: 2^27 bytes, the largest accepted window.
    const widest = Buffer.from(wide);
    widest[5] = 0x88;
    expect((await contentOfFile(widest)).content.toString()).toBe('hello');
    const withDictionary = Buffer.from([
      0x28, 0xb5, 0x2f, 0xfd, 0x01, 0x50, 0x07, 0x29, 0x00, 0x00, 1, 2, 3, 4, 5,
    ]);
    await expect(contentOfFile(withDictionary)).rejects.toThrow(/dictionary/);
  });

  test('other compressions are named, with the command that decompresses them', async () => {
    const xz = Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 1, 2]);
    await expect(contentOfFile(xz, 'a.xz')).rejects.toThrow(
      /a\.xz is compressed with xz, which is not supported.*xz -dc .*\| logstrata load AGENT -/,
    );
    await expect(contentOfFile(Buffer.from('BZh91AY&SYxxxx'))).rejects.toMatchObject({ code: 'unsupported' });
    await expect(contentOfFile(Buffer.from('PK\x03\x04xxxx'))).rejects.toMatchObject({ code: 'unsupported' });
    expect((await contentOfFile(Buffer.from('PK is no archive'))).compression).toBe('none');
  });

  test('a tar archive is named, compressed or not, unlike a log whose beginning resembles one', async () => {
    const header = Buffer.alloc(512);
    header.write('logs/access.log');
    header.write('0000644\0', 100);
    header.write('ustar', 257);
    const tar = Buffer.concat([header, Buffer.from('10.0.0.1 - - "GET / HTTP/1.1" 200\n')]);
    for (const bytes of [tar, gzip(tar), zstd(tar)])
      await expect(contentOfFile(bytes, 'a.tar')).rejects.toThrow(
        /a\.tar is a tar archive, which is not supported\..*tar -xOf .*a\.tar NAME… \| logstrata load AGENT -/,
      );
    const line = Buffer.alloc(600, 'x');
    line.write('ustar', 258);
    const broken = Buffer.from(tar);
    broken[40] = 0x0a;
    for (const bytes of [line, broken, tar.subarray(0, 261)])
      expect((await contentOfFile(bytes)).content.equals(bytes)).toBe(true);
  });
});

describe('a file', () => {
  test('that is missing, a folder or a pipe is named', async () => {
    const folder = await temporaryFolder();
    await expect(SourceCursor.open(join(folder, 'none'))).rejects.toMatchObject({ code: 'not_found' });
    await mkdir(join(folder, 'sub'));
    await expect(SourceCursor.open(join(folder, 'sub'))).rejects.toThrow(/is a folder/);
  });

  test('that shrinks while it is read is an error', async () => {
    const path = join(await temporaryFolder(), 'log');
    await writeFile(path, Buffer.alloc(3_000_000, 'x\n'));
    const reader = await SourceCursor.open(path);
    await reader.next();
    await truncate(path, 1000);
    await expect(readAll(reader)).rejects.toThrow(/shrank while it was read: it had 3000000 bytes/);
    await expect(reader.requireUnchanged()).rejects.toThrow(
      /shrank while it was read, from 3000000 to 1000 bytes/,
    );
    await reader.close();
  });

  test('that grows is read up to the length that it had when it was opened', async () => {
    const path = join(await temporaryFolder(), 'log');
    await writeFile(path, 'one\n');
    const reader = await SourceCursor.open(path);
    expect(await reader.hasGrown()).toBe(false);
    await appendFile(path, 'two\n');
    expect((await readAll(reader)).toString()).toBe('one\n');
    expect(await reader.hasGrown()).toBe(true);
    await reader.requireUnchanged();
    await writeFile(path, 'other content, written anew\n');
    await expect(reader.requireUnchanged()).rejects.toThrow(/was changed while it was read/);
    await reader.close();
  });
});

describe('a stream', () => {
  test('is read in pieces of any size, compressed or not', async () => {
    const content = Buffer.from('first line\nsecond line\n'.repeat(20));
    const forms = [
      content,
      gzip(content),
      zstd(content),
      gzip(content.subarray(0, 99), content.subarray(99)),
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...forms),
        fc.array(fc.integer({ min: 1, max: 40 })),
        async (bytes, lengths) => {
          const pieces: Buffer[] = [];
          let at = 0;
          for (let i = 0; at < bytes.length; i++) {
            const length = lengths[i % Math.max(1, lengths.length)] ?? 1;
            pieces.push(bytes.subarray(at, at + length));
            at += length;
          }
          const source = await SourceCursor.of(new StreamSource('-', Readable.from(pieces)));
          expect((await readAll(source)).equals(content)).toBe(true);
          await source.close();
        },
      ),
      { numRuns: caseCount(60) },
    );
  });

  test('that is slow is recognised by its first byte', async () => {
    const input = new Readable({ read() {} });
    input.push('x');
    const content = await SourceCursor.of(new StreamSource('-', input));
    expect(content.compression).toBe('none');
    expect(Buffer.from((await content.next())!).toString()).toBe('x');
    const waiting = content.next();
    content.stop();
    expect(await waiting).toBeNull();
    await content.close();
  });

  test('that fails reports the position', async () => {
    const input = Readable.from(
      (async function* () {
        yield Buffer.from('some\n');
        await Promise.resolve();
        throw new Error('the pipe broke');
      })(),
    );
    const content = await SourceCursor.of(new StreamSource('-', input));
    await expect(readAll(content)).rejects.toMatchObject({
      code: 'io',
      offset: 5,
      message: expect.stringContaining('the pipe broke'),
    });
    await content.close();
  });
});

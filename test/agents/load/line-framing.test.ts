import { describe, expect, test } from 'vitest';
import { fc } from '../../cases.js';
import {
  frameBytesDefault,
  framerBufferBytes,
  LineFramer,
  type Frame,
} from '../../../agents/decode/line-framing.js';
import { lineBytesMax } from '../../../engine/core/limits.js';

/** Pieces of content, and the number of bytes that the framer reported as handed out. */
function pieces(parts: readonly Uint8Array[]) {
  const queue = parts.filter((part) => part.length > 0);
  const pieces: Buffer[] = [];
  return {
    path: 'some.log',
    take: (bytes: Uint8Array) => void pieces.push(Buffer.from(bytes)),
    taken: () => Buffer.concat(pieces),
    next: () => Promise.resolve(queue.shift() ?? null),
  };
}

interface Seen {
  readonly kind: Frame['kind'];
  readonly offset: number;
  readonly bytes: Buffer;
}

async function frames(
  source: ReturnType<typeof pieces>,
  eager = false,
  frameBytes?: number,
): Promise<Seen[]> {
  const framer = new LineFramer(source, 0, eager, undefined, frameBytes);
  const seen: Seen[] = [];
  for (let frame = await framer.next(); frame !== null; frame = await framer.next()) {
    seen.push({
      kind: frame.kind,
      offset: frame.offset,
      bytes: Buffer.from(frame.bytes.subarray(0, frame.end)),
    });
    if (frame.kind === 'tail') {
      framer.keepTail();
      break;
    }
  }
  return seen;
}

describe('line frames', () => {
  test('hold whole lines at their offsets, whatever the size of the pieces', async () => {
    const parts = fc.array(
      fc.constantFrom('', 'a', 'bc\n', '\n', '\r\n', 'd\ne', 'long text without an end '),
      { maxLength: 40 },
    );
    await fc.assert(
      fc.asyncProperty(parts, fc.boolean(), async (texts, eager) => {
        const content = Buffer.from(texts.join(''));
        const source = pieces(texts.map((text) => Buffer.from(text)));
        const seen = await frames(source, eager);
        let at = 0;
        for (const [i, { kind, offset, bytes }] of seen.entries()) {
          expect(offset).toBe(at);
          expect(bytes.equals(content.subarray(at, at + bytes.length))).toBe(true);
          expect(kind).toBe(bytes.at(-1) === 0x0a ? 'lines' : 'tail');
          if (kind === 'tail') expect([i, bytes.includes(0x0a)]).toEqual([seen.length - 1, false]);
          at += bytes.length;
        }
        expect(at).toBe(content.length);
        expect(source.taken().equals(content)).toBe(true);
      }),
    );
  });

  test('are unchanged in buffers that the framer has left, until these are given back', async () => {
    const source = pieces(['one\ntw', 'o\nthree\nfo', 'ur\nfive\nsix'].map((text) => Buffer.from(text)));
    let given: Uint8Array | undefined;
    const framer = new LineFramer(
      source,
      0,
      true,
      undefined,
      frameBytesDefault,
      () => given ?? new Uint8Array(framerBufferBytes(frameBytesDefault)),
    );
    const left: Frame[] = [];
    for (let frame = await framer.next(); frame?.kind === 'lines'; frame = await framer.next()) {
      framer.leaveBuffer();
      given = undefined;
      left.push(frame);
      if (left.length === 2) given = left.shift()!.bytes;
    }
    const texts = left.map((frame) =>
      frame.kind === 'lines' ? Buffer.from(frame.bytes.subarray(0, frame.end)).toString() : frame.kind,
    );
    expect(texts).toEqual(['four\nfive\n']);
    framer.keepTail();
    expect(source.taken().toString()).toBe('one\ntwo\nthree\nfour\nfive\nsix');
  });

  test('of a live stream are handed out as soon as there is a line; those of a file are filled', async () => {
    const parts = ['one\n', 'two\nthr', 'ee\n'].map((text) => Buffer.from(text));
    const texts = (seen: Seen[]) => seen.map(({ bytes }) => bytes.toString());
    expect(texts(await frames(pieces(parts), true))).toEqual(['one\n', 'two\n', 'three\n']);
    expect(texts(await frames(pieces(parts)))).toEqual(['one\ntwo\nthree\n']);
    expect(texts(await frames(pieces(parts), false, 4))).toEqual(['one\n', 'two\n', 'three\n']);
    expect(texts(await frames(pieces(parts), false, 5))).toEqual(['one\ntwo\n', 'three\n']);
  });

  test('have the beginning and the length of a line that is too long, and continue after it', async () => {
    const long = Buffer.alloc(3 * lineBytesMax + 17, 'x');
    const content = Buffer.concat([Buffer.from('before\n'), long, Buffer.from('\nbehind\n'), long]);
    const parts: Buffer[] = [];
    for (let at = 0; at < content.length; at += 300_007) parts.push(content.subarray(at, at + 300_007));
    const source = pieces(parts);
    const framer = new LineFramer(source);
    const seen: Partial<Frame>[] = [];
    for (let frame = await framer.next(); frame !== null; frame = await framer.next()) {
      const { bytes, ...rest } = frame;
      if (frame.kind === 'long') expect(bytes.length).toBe(lineBytesMax);
      seen.push(rest);
    }
    expect(seen).toEqual([
      { kind: 'lines', end: 7, offset: 0, endsInLine: false },
      { kind: 'long', end: lineBytesMax, lengthBytes: long.length, offset: 7, endsInLine: false },
      { kind: 'lines', end: 7, offset: 7 + long.length + 1, endsInLine: false },
      {
        kind: 'long',
        end: lineBytesMax,
        lengthBytes: long.length,
        offset: 14 + long.length + 1,
        endsInLine: true,
      },
    ]);
    expect(source.taken().equals(content)).toBe(true);
  });

  test('accept a line of exactly the maximum length', async () => {
    const line = Buffer.alloc(lineBytesMax + 1, 'x');
    line[lineBytesMax] = 0x0a;
    for (const part of [line.length, 65_536, 1000]) {
      const parts: Buffer[] = [];
      for (let at = 0; at < line.length; at += part) parts.push(line.subarray(at, at + part));
      expect((await frames(pieces(parts))).map(({ kind }) => kind)).toEqual(['lines']);
    }
  });

  test('refuse UTF-16, with or without a byte order mark, but not a NUL', async () => {
    const text = 'a line of some text\n';
    const little = Buffer.from(text, 'utf16le');
    const big = Buffer.from(little).swap16();
    const refused: [Buffer, string][] = [
      [Buffer.concat([Buffer.from([0xff, 0xfe]), little]), 'UTF-16LE'],
      [little, 'UTF-16LE'],
      [Buffer.concat([Buffer.from([0xfe, 0xff]), big]), 'UTF-16BE'],
      [big, 'UTF-16BE'],
    ];
    for (const [content, name] of refused) {
      await expect(frames(pieces([content]))).rejects.toMatchObject({
        code: 'unsupported',
        path: 'some.log',
        message: expect.stringContaining(
          `some.log is ${name} text: write encoding: ${name.toLowerCase()} in the agent's file`,
        ),
      });
    }
    expect((await frames(pieces([Buffer.from('a\0b\0 and text \0\n')]))).length).toBe(1);
  });
});

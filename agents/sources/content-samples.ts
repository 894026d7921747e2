import { createHash } from 'node:crypto';

/** Content is sampled every 16 bytes up to here, because a log may be short, and then at steps of an eighth of the offset. */
const denseBytes = 2048;
const stepBytes = 16;

/** Bytes before an offset that its sample covers: a line of a log, with its time. */
const sampledBytes = 128;

/** Characters of each sample, 18 bits. */
const characters = 3;

/** Stands for a sample whose bytes were not at hand. */
const unknown = '.'.repeat(characters);

function nextOffset(offset: number): number {
  return offset + (offset < denseBytes ? stepBytes : Math.floor(offset / 8));
}

function sampleOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, characters);
}

/**
 * Extends the samples of content up to `from` by `contentBytes` more bytes, which begin with `bytes`. `tail` are the last
 * bytes before `from`. Samples are hashes of the bytes before a series of offsets, the same for all content. Thus the
 * samples of the beginning of a content are the beginning of its samples.
 */
export function grownSamples(
  samples: string,
  from: number,
  tail: Uint8Array,
  bytes: Uint8Array,
  contentBytes = bytes.length,
): string {
  let grown = samples;
  let offset = 0;
  for (let left = samples.length; left >= 0; left -= characters) offset = nextOffset(offset);
  for (; offset <= from + contentBytes; offset = nextOffset(offset)) {
    const start = Math.max(0, offset - sampledBytes) - from;
    const end = offset - from;
    if (end <= 0 || end > bytes.length || -start > tail.length) grown += unknown;
    else if (start >= 0) grown += sampleOf(bytes.subarray(start, end));
    else grown += sampleOf(Buffer.concat([tail.subarray(tail.length + start), bytes.subarray(0, end)]));
  }
  return grown;
}

/** Samples the first `contentBytes` bytes of content whose bytes `read` returns. Throws what `read` throws. */
export async function samplesOf(
  contentBytes: number,
  read: (offset: number, length: number) => Promise<Uint8Array>,
): Promise<string> {
  let samples = '';
  for (let offset = nextOffset(0); offset <= contentBytes; offset = nextOffset(offset)) {
    const length = Math.min(offset, sampledBytes);
    const bytes = await read(offset - length, length);
    samples += bytes.length === length ? sampleOf(bytes) : unknown;
  }
  return samples;
}

/** The samples of the first `contentBytes` bytes of content with the given samples. */
export function samplesTo(samples: string, contentBytes: number): string {
  let count = 0;
  for (let offset = nextOffset(0); offset <= contentBytes; offset = nextOffset(offset)) count++;
  return samples.slice(0, count * characters);
}

/** Up to where two contents are alike as far as their samples show, and from where they differ (Infinity: nowhere). */
export function alike(a: string, b: string): { readonly to: number; readonly differs: number } {
  let to = 0;
  let offset = 0;
  for (let at = 0; at < Math.min(a.length, b.length); at += characters) {
    offset = nextOffset(offset);
    const [one, other] = [a.slice(at, at + characters), b.slice(at, at + characters)];
    if (one === other && one !== unknown) to = offset;
    else if (one !== unknown && other !== unknown) return { to, differs: offset };
  }
  return { to, differs: Infinity };
}

import type { ContentReader, SourceReader } from '../../sources/source-reader.js';
import { openAtKnownEnd, openFromStart } from '../../sources/source-identity.js';
import { LineFramer, type Frame, type RecordEnds } from '../../decode/line-framing.js';
import type { Checkpoint } from '../../../engine/index.js';
import { beginning, positionOf, type SourcePosition } from './source-position.js';

const lineFeed = 0x0a;

/** Bytes of content that are decompressed in one turn, after which other files have theirs: more than lines have, except one without an end. */
const turnBytes = 32 * 1024 * 1024;

/** Limit on the content by which a file is compared with one that is still read. */
const sampledBytesMax = 64 * 1024;

/** What shows whether a content is a copy of another one: samples of it, and how long it is at least. */
export interface SampledContent {
  readonly samples: string;
  readonly bytes: number;
}

/** A compressed generation, which is read to its end once. */
export class CompressedSource {
  private held: Frame | null | undefined;
  private coming: Promise<Frame | null> | undefined;
  private readonly framer: LineFramer;
  private leftBytes = 0;
  private onTurnEnd: () => void = () => {};
  private goOn: () => void = () => {};

  private constructor(
    private readonly reader: SourceReader,
    private readonly content: ContentReader,
    ends: RecordEnds,
    /** Position from which it is read. */
    readonly position: SourcePosition,
    /** The checkpoint by which it was recognised; null for none. */
    readonly known: Checkpoint | null,
  ) {
    const { path } = content;
    const hashed = (bytes: Uint8Array): void => content.hashed(bytes);
    this.framer = new LineFramer({ path, next: () => this.nextPiece(), hashed }, content.offset, false, ends);
  }

  /** Reads the first bytes of the decompressed content. Throws `SourceError`. */
  static async head(path: string): Promise<Uint8Array> {
    const { reader, head } = await openFromStart(path);
    await reader.close();
    return head;
  }

  /** Samples the first bytes of the decompressed content. Throws `SourceError`. */
  static async sampled(path: string): Promise<SampledContent> {
    const { reader, content } = await openFromStart(path);
    try {
      await content.skipTo(sampledBytesMax, () => {});
      return { samples: content.samples(), bytes: content.offset };
    } finally {
      await reader.close();
    }
  }

  /**
   * Opens the file at the furthest of the checkpoints whose content it has, at its end if it is only the beginning of one of
   * `wholes`; else at its beginning. Throws `SourceError`.
   */
  static async open(
    path: string,
    checkpoints: readonly Checkpoint[],
    wholes: readonly Checkpoint[],
    ends: RecordEnds,
  ): Promise<CompressedSource> {
    const source = await openAtKnownEnd(path, checkpoints, () => {}, { wholes });
    const { reader, content, head } = source;
    // The checkpoint of a longer source stays, because that source may return.
    const isBeginning = content.offset < (source.known?.offset ?? 0);
    const known = isBeginning ? null : source.known;
    const { offset } = content;
    const tail = content.tail();
    const endsInLine = offset > 0 && tail.at(-1) !== lineFeed;
    const start = { ...beginning, offset, head: head.slice(0, offset), tail, endsInLine, unseenTo: Infinity };
    const position = known === null ? start : positionOf(known, head, tail, Infinity);
    const samples = content.samples();
    return new CompressedSource(reader, content, ends, { ...position, samples }, known);
  }

  /** Size of the compressed file. */
  get packedBytes(): number {
    return this.reader.fileBytes;
  }

  /**
   * Returns the next lines; the same ones until `take`. Null at the end; `more` where the end of a line is not found in one
   * turn. Throws `SourceError`.
   */
  async peek(): Promise<Frame | null | 'more'> {
    if (this.held !== undefined) return this.held;
    this.leftBytes = turnBytes;
    const next = await new Promise<Frame | null | 'more'>((resolve, reject) => {
      this.onTurnEnd = () => resolve('more');
      this.goOn();
      this.coming ??= this.framer.next();
      this.coming.then(resolve, reject);
    });
    if (next === 'more') return next;
    this.coming = undefined;
    if (next?.kind === 'tail') this.framer.keepTail();
    this.held = next;
    return next;
  }

  /** The next piece of content; after a turn, once the next one has begun. */
  private async nextPiece(): Promise<Uint8Array | null> {
    if (this.leftBytes <= 0) {
      await new Promise<void>((resolve) => {
        this.goOn = resolve;
        this.onTurnEnd();
      });
    }
    const piece = await this.content.next();
    this.leftBytes -= piece?.length ?? 0;
    return piece;
  }

  /** Consumes the lines that `peek` returned. Returns the last bytes of the content before their end. */
  take(): Uint8Array {
    this.held = undefined;
    return this.content.tail();
  }

  /** Closes the file. What is being read ends first. */
  async close(): Promise<void> {
    this.reader.content.stop();
    this.leftBytes = Infinity;
    this.goOn();
    await this.coming?.catch(() => {});
    await this.reader.close();
  }
}

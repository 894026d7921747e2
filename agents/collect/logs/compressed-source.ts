import { closing } from '../../../engine/index.js';
import { openAtKnownEnd, SourceCursor } from '../../sources/source-cursor.js';
import type { Encoding } from '../../definition/definition.js';
import type { RecordEndsOf } from '../../decode/record-ends.js';
import { endsLine, LineFramer, type Frame, type RecordEnds } from '../../decode/line-framing.js';
import type { Checkpoint } from '../../../engine/index.js';
import { beginning, positionOf, type SourcePosition } from '../../sources/source-position.js';

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
  /** The encoding of the content; undefined for UTF-8. */
  readonly encoding: Encoding | undefined;
  private held: Frame | null | undefined;
  private coming: Promise<Frame | null> | undefined;
  private readonly framer: LineFramer;
  private leftBytes = 0;
  private onTurnEnd: () => void = () => {};
  private goOn: () => void = () => {};

  private constructor(
    private readonly cursor: SourceCursor,
    ends: RecordEnds,
    /** Position from which it is read. */
    readonly position: SourcePosition,
    /** The checkpoint by which it was recognised; null for none. */
    readonly known: Checkpoint | null,
  ) {
    const take = (bytes: Uint8Array): void => cursor.take(bytes);
    const source = { path: cursor.path, next: () => this.nextPiece(), take };
    this.framer = new LineFramer(source, cursor.offset, false, ends);
    this.encoding = ends.encoding;
  }

  /** Reads the first bytes of the decompressed content. Throws `SourceError`. */
  static async head(path: string): Promise<Uint8Array> {
    const cursor = await SourceCursor.open(path);
    await cursor.close();
    return cursor.head;
  }

  /** Samples the first bytes of the decompressed content. Throws `SourceError`. */
  static async sampled(path: string): Promise<SampledContent> {
    return closing(SourceCursor.open(path), async (cursor) => {
      await cursor.skipTo(sampledBytesMax);
      return { samples: cursor.position.samples, bytes: cursor.offset };
    });
  }

  /**
   * Opens the file at the furthest of the checkpoints whose content it has, at its end if it is only the beginning of one of
   * `wholes`; else at its beginning. Throws `SourceError`.
   */
  static async open(
    path: string,
    checkpoints: readonly Checkpoint[],
    wholes: readonly Checkpoint[],
    endsOf: RecordEndsOf,
  ): Promise<CompressedSource> {
    const cursor = await openAtKnownEnd(path, checkpoints, () => {}, { wholes });
    const { head, offset, position: reached } = cursor;
    // The checkpoint of a longer source stays, because that source may return.
    const isBeginning = offset < (cursor.known?.offset ?? 0);
    const known = isBeginning ? null : cursor.known;
    const ends = endsOf(head);
    const endsInLine = offset > 0 && !endsLine(ends, reached.tail, reached.tail.length);
    const start = { ...beginning, ...reached, endsInLine, unseenTo: Infinity };
    const position = known === null ? start : positionOf(known, head, reached.tail, Infinity);
    return new CompressedSource(cursor, ends, { ...position, samples: reached.samples }, known);
  }

  /** Size of the compressed file. */
  get packedBytes(): number {
    return this.cursor.file.size;
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
    const piece = await this.cursor.next();
    this.leftBytes -= piece?.length ?? 0;
    return piece;
  }

  /** Consumes the lines that `peek` returned. Returns the last bytes of the content before their end. */
  take(): Uint8Array {
    this.held = undefined;
    return this.cursor.position.tail;
  }

  /** Closes the file. What is being read ends first. */
  async close(): Promise<void> {
    this.cursor.stop();
    this.leftBytes = Infinity;
    this.goOn();
    await this.coming?.catch(() => {});
    await this.cursor.close();
  }
}

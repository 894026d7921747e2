import type { ContentReader } from '../../sources/content-reader.js';
import { openAtKnownEnd, openFromStart } from '../../sources/source-identity.js';
import { LineFramer, type Frame } from '../../lines/line-framing.js';
import type { RecordEnds } from '../../lines/record-ends.js';
import type { SourceReader } from '../../sources/source-reader.js';
import type { Checkpoint } from '../../../engine/index.js';
import { beginning, positionOf, type SourcePosition } from './source-position.js';

const lineFeed = 0x0a;

/** A compressed generation, which is read to its end once. */
export class CompressedSource {
  private held: Frame | null | undefined;

  private constructor(
    private readonly reader: SourceReader,
    private readonly content: ContentReader,
    private readonly framer: LineFramer,
    /** Position from which it is read. */
    readonly position: SourcePosition,
    /** The checkpoint by which it was recognised; null for none. */
    readonly known: Checkpoint | null,
  ) {}

  /** Reads the first bytes of the decompressed content. Throws `SourceError`. */
  static async head(path: string): Promise<Uint8Array> {
    const { reader, head } = await openFromStart(path);
    await reader.close();
    return head;
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
    const source = await openAtKnownEnd(path, checkpoints, () => {}, undefined, wholes);
    const { reader, content, head } = source;
    // The checkpoint of a longer source stays, because that source may return.
    const isBeginning = content.offset < (source.known?.offset ?? 0);
    const known = isBeginning ? null : source.known;
    const { offset } = content;
    const tail = content.tail();
    const endsInLine = offset > 0 && tail.at(-1) !== lineFeed;
    const start = { ...beginning, offset, head: head.slice(0, offset), tail, endsInLine, unseenTo: Infinity };
    const position = known === null ? start : positionOf(known, head, tail, Infinity);
    const framer = new LineFramer(content, offset, false, ends);
    const samples = content.samples();
    return new CompressedSource(reader, content, framer, { ...position, samples }, known);
  }

  /** Size of the compressed file. */
  get packedBytes(): number {
    return this.reader.fileBytes;
  }

  /** Returns the next lines; the same ones until `take`. Null at the end. Throws `SourceError`. */
  async peek(): Promise<Frame | null> {
    if (this.held === undefined) {
      this.held = await this.framer.next();
      if (this.held?.kind === 'tail') this.framer.keepTail();
    }
    return this.held;
  }

  /** Consumes the lines that `peek` returned. Returns the last bytes of the content before their end. */
  take(): Uint8Array {
    this.held = undefined;
    return this.content.tail();
  }

  close(): Promise<void> {
    return this.reader.close();
  }
}

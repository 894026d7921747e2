import type { ContentReader } from '../../sources/content-reader.js';
import { openAtKnownEnd, openFromStart } from '../../sources/source-identity.js';
import { LineFramer, type Frame } from '../../lines/line-framing.js';
import type { RecordEnds } from '../../lines/record-ends.js';
import type { SourceReader } from '../../sources/source-reader.js';
import type { Checkpoint } from '../../../engine/index.js';
import { beginning, positionOf, type SourcePosition } from './source-position.js';

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

  /** Opens the file at the furthest of the checkpoints whose content it has; else at its beginning. Throws `SourceError`. */
  static async open(
    path: string,
    checkpoints: readonly Checkpoint[],
    ends: RecordEnds,
  ): Promise<CompressedSource> {
    const { reader, content, head, known } = await openAtKnownEnd(path, checkpoints, () => {});
    const position =
      known === null
        ? { ...beginning, unseenTo: Infinity }
        : positionOf(known, head, content.tail(), Infinity);
    const framer = new LineFramer(content, content.offset, false, ends);
    return new CompressedSource(reader, content, framer, position, known);
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

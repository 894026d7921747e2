import { sha256 } from '../../sources/content-hash.js';
import { ContentReader } from '../../sources/content-reader.js';
import {
  candidatesOf,
  headBytesMax,
  openFromStart,
  type OpenedSource,
} from '../../sources/source-identity.js';
import { LineFramer, type Frame } from '../../lines/line-framing.js';
import type { RecordEnds } from '../../lines/record-ends.js';
import { SourceReader } from '../../sources/source-reader.js';
import type { Checkpoint } from '../../../engine/index.js';
import { beginning, positionOf, type SourcePosition } from './source-position.js';

/** A compressed generation that is read to its end, once. */
export class CompressedSource {
  private held: Frame | null | undefined;

  private constructor(
    private readonly reader: SourceReader,
    private readonly content: ContentReader,
    private readonly framer: LineFramer,
    /** Where it is read on. */
    readonly position: SourcePosition,
    /** The checkpoint it was recognised by; null for none. */
    readonly known: Checkpoint | null,
  ) {}

  /** The first bytes of the content. Throws `SourceError`. */
  static async head(path: string): Promise<Uint8Array> {
    const reader = await SourceReader.open(path);
    try {
      return await new ContentReader(reader.content).head(headBytesMax);
    } finally {
      await reader.close();
    }
  }

  /** Opens it behind the longest of the checkpoints whose content it has. Throws `SourceError`. */
  static async open(
    path: string,
    checkpoints: readonly Checkpoint[],
    ends: RecordEnds,
  ): Promise<CompressedSource> {
    let known: Checkpoint | null = null;
    const first = await openFromStart(path);
    try {
      const before = candidatesOf(checkpoints, first.head);
      for (const candidate of before) {
        if ((await first.content.skipTo(candidate.offset, () => {})) < candidate.offset) break;
        if (matches(candidate, first.content)) known = candidate;
      }
      if (first.content.offset === (known?.offset ?? 0))
        return new CompressedSource(...parts(first, known, ends));
    } catch (error) {
      await first.reader.close();
      throw error;
    }
    await first.reader.close();
    const again = await openFromStart(path);
    try {
      await again.content.skipTo(known?.offset ?? 0, () => {});
      return new CompressedSource(...parts(again, known, ends));
    } catch (error) {
      await again.reader.close();
      throw error;
    }
  }

  /** Length of the file, as it is compressed. */
  get packedBytes(): number {
    return this.reader.fileBytes;
  }

  /** The next lines, held until they are taken; null at the end. Throws `SourceError`. */
  async peek(): Promise<Frame | null> {
    if (this.held === undefined) {
      this.held = await this.framer.next();
      if (this.held?.kind === 'tail') this.framer.keepTail();
    }
    return this.held;
  }

  /** The lines that were looked at are taken. Returns the last bytes of the content up to their end. */
  take(): Uint8Array {
    this.held = undefined;
    return this.content.tail();
  }

  close(): Promise<void> {
    return this.reader.close();
  }
}

function parts(
  { reader, content, head }: OpenedSource,
  known: Checkpoint | null,
  ends: RecordEnds,
): [SourceReader, ContentReader, LineFramer, SourcePosition, Checkpoint | null] {
  const position =
    known === null ? { ...beginning, unseenTo: Infinity } : positionOf(known, head, content.tail(), Infinity);
  return [reader, content, new LineFramer(content, content.offset, false, ends), position, known];
}

function matches({ tailHash }: Checkpoint, content: ContentReader): boolean {
  return tailHash === sha256(content.tail());
}

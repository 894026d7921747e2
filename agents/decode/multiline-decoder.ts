import { isUtf8 } from 'node:buffer';
import type { BatchBuilder } from '../../engine/index.js';
import { joinLines, type MultilineRecords, type TextRange } from '../lines/record-ends.js';
import type { Written } from '../times/written.js';
import type { LinesOrigin, RecordDecoder, RejectLine } from './line-decoder.js';

/** Decodes lines, and also texts that contain line feeds. */
export interface RecordTextDecoder extends RecordDecoder {
  /** Decodes one text as it is. `reject` gets only the reason; the caller knows the position. */
  decodeText(text: TextRange, builder: BatchBuilder, reject: (reason: string) => void): void;
  /** Begins a turn. `decode` does so itself; a caller of `decodeText` does it, and checks `turnIsOver`. */
  beginTurn(): void;
  readonly turnIsOver: boolean;
}

/** Decodes records of several lines. Records of one line, which most are, are passed in runs to the decoder of lines. */
export class MultilineDecoder implements RecordDecoder {
  constructor(
    private readonly lines: RecordTextDecoder,
    private readonly records: MultilineRecords,
  ) {}

  get counters(): RecordDecoder['counters'] {
    return this.lines.counters;
  }

  use(origin: LinesOrigin): void {
    this.lines.use(origin);
  }

  get years(): NonNullable<Written['years']> {
    return this.lines.years;
  }

  decode(bytes: Uint8Array, start: number, end: number, builder: BatchBuilder, reject: RejectLine): number {
    const isText = isUtf8(bytes.subarray(start, end));
    // The search for the end of the last line must not go beyond it.
    const content = bytes.subarray(0, end);
    let at = start;
    this.lines.beginTurn();
    while (at < end && !builder.full) {
      const runEnd = this.#runEnd(content, at, end, isText);
      if (runEnd > at) {
        at = this.lines.decode(bytes, at, runEnd, builder, reject);
        if (at < runEnd) return at;
        continue;
      }
      const from = at;
      at = this.records.recordEnd(content, from, end, isText);
      const textEnd = bytes[at - 1] === 0x0a ? at - 1 : at;
      this.lines.decodeText(joinLines(bytes, from, at), builder, (reason) => reject(reason, from, textEnd));
      if (this.lines.turnIsOver) break;
    }
    return at;
  }

  /** End of the run of single-line records from `start` on. */
  #runEnd(bytes: Uint8Array, start: number, end: number, isText: boolean): number {
    const { records } = this;
    let at = start;
    while (at < end) {
      const recordEnd = records.recordEnd(bytes, at, end, isText);
      if (records.lines > 1) break;
      at = recordEnd;
    }
    return at;
  }
}

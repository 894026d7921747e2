import { makeSchema, type WorkerPool } from '../../engine/index.js';
import { decodeSettings, type DecodeSettings } from '../frames/decode-task.js';
import type { FieldDefinition } from '../definition/definition.js';
import { yearSource } from '../decode/field-writer.js';
import { FileLines, type FileFrame, type FrameConsumer } from '../frames/file-lines.js';
import type { DecodedBatch } from '../frames/lent-decoding.js';
import type { ContentReader } from '../sources/content-reader.js';
import { reopenAt, type PositionedSource } from '../sources/source-identity.js';
import { isUndated, lacksYear } from '../times/timestamp.js';
import { placeBehind, yearsBegin, type Written, type YearPlace } from '../times/written.js';

/** Options of counting years. */
export interface YearsOptions {
  /** Field values from the file's name. */
  readonly captures: ReadonlyMap<string, string>;
  readonly workers: WorkerPool | undefined;
  readonly signal: AbortSignal | undefined;
  /** Called with the number of bytes of the file that were read, before decompression. */
  readonly onRead: (fileBytesRead: number) => void;
}

/** The state of year counting at a content offset, relative to the first line, because the file's end is not known yet. */
interface Place {
  readonly offset: number;
  readonly years: readonly YearPlace[];
}

/**
 * Determines when the lines of a file were written whose times lack the year: at the latest when the file was last modified,
 * and one year earlier for each turn of the year that follows. To count these, the file is read once beforehand, as far as
 * it is not stored yet; not where the file's name gives the year, or where all times have one.
 */
export async function fileWritten(
  source: PositionedSource,
  decode: DecodeSettings,
  options: YearsOptions,
): Promise<(offset: number) => Written> {
  const byMs = source.part?.writtenMs ?? source.reader.modifiedMs;
  const isCounted = ({ timestamp, template }: FieldDefinition): boolean =>
    timestamp !== undefined &&
    lacksYear(timestamp) &&
    (template !== undefined || !options.captures.has(yearSource));
  if (!decode.definition.fields.some(isCounted)) return () => ({ byMs });
  const onPiece = (_reader: unknown, content: ContentReader): void => {
    options.signal?.throwIfAborted();
    options.onRead(content.bytesTaken);
  };
  const { path, openFile } = source.reader;
  const again = await reopenAt(path, source.known, source.head, onPiece, openFile);
  if (source.part !== undefined) again.content.endAt(source.part.offset);
  try {
    const years = new FileYears(again, decode, options, byMs);
    return await years.count();
  } finally {
    await again.reader.close();
  }
}

/** Decodes only the undated times of a file, and counts its turns of the year. */
class FileYears implements FrameConsumer {
  private readonly places: Place[] = [];
  private running: readonly YearPlace[];

  constructor(
    private readonly source: PositionedSource,
    private readonly decode: DecodeSettings,
    private readonly options: YearsOptions,
    private readonly byMs: number,
  ) {
    this.running = this.decode.definition.fields
      .filter(({ timestamp }) => isUndated(timestamp))
      .map(() => yearsBegin);
  }

  async count(): Promise<(offset: number) => Written> {
    const { source, options, byMs } = this;
    const { definition, timezone } = this.decode;
    const fields = definition.fields.filter(({ timestamp }) => isUndated(timestamp));
    const schema = makeSchema(fields.map(({ name, type }) => ({ name, type })));
    const decode = decodeSettings({ ...definition, fields, schema }, timezone);
    // Frames are decoded in parallel, so each counts from its own beginning.
    const written = { byMs, years: fields.map(() => yearsBegin) };
    await new FileLines(source, { ...options, decode, writtenAt: () => written }, this).run();
    this.places.push({ offset: source.content.offset, years: this.running });
    const { places, running: last } = this;
    return (offset) => {
      const { years } = places[lastNotBehind(places, offset)]!;
      return { byMs, years: years.map((place, i) => countedBack(place, last[i]!)) };
    };
  }

  reject(): Promise<void> {
    return Promise.resolve();
  }

  take({ base }: FileFrame, { batch, years }: DecodedBatch, isLast: boolean): Promise<void> {
    batch?.lease?.free();
    if (!isLast) return Promise.resolve();
    this.places.push({ offset: base, years: this.running });
    this.running = this.running.map((place, i) => placeBehind(place, years?.[i] ?? yearsBegin));
    return Promise.resolve();
  }

  hasRead(): void {
    this.options.onRead(this.source.content.bytesTaken);
  }
}

/** A place counted back from the last one. Undefined where the lines are not in order: each then has the latest possible year. */
function countedBack(place: YearPlace, last: YearPlace): YearPlace | undefined {
  return last.isOrdered ? { ...place, yearsBack: place.yearsBack - last.yearsBack } : undefined;
}

/** Index of the last place at or before the offset; 0 where there is none. */
function lastNotBehind(places: readonly Place[], offset: number): number {
  let low = 0;
  let high = places.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (places[middle]!.offset <= offset) low = middle;
    else high = middle;
  }
  return low;
}

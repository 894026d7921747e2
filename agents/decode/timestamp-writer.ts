import type { ColumnBuilder, IntColumnBuilder } from '../../engine/index.js';
import { skipBlanks, trimBlanks } from './number-text.js';
import { bytesText, Kind, type ParsedLine } from './parsed-line.js';
import {
  compileTimestamp,
  isUndated,
  lacksYear,
  type TimestampFormat,
  type TimestampReader,
} from '../times/timestamp.js';
import { intColumn, type FieldWriter, type UndatedTimes, type WriterOptions } from './value-writer.js';
import { YearWalk, type YearPlace } from '../times/written.js';

/** Places of a time and of its year among the parsed fields of a line; -1 where nothing provides them. */
export interface TimePlaces {
  readonly time: number;
  readonly year: number;
}

/** Longer texts, which no timestamp has, are not remembered. */
const rememberedBytesMax = 64;

/**
 * Writes a `time` field with a timestamp format. Remembers the last text, because neighbouring lines often have the same
 * one. Throws `invalid` for an invalid format.
 */
export class TimestampWriter implements FieldWriter {
  readonly undated: UndatedReader | undefined;
  readonly #read: TimestampReader;
  #column: IntColumnBuilder | null = null;
  readonly #lastText = new Uint8Array(rememberedBytesMax);
  #lastBytes = -1;
  #lastYear: number | null = null;
  #lastBegin = 0;
  #lastTimeMs = 0;

  constructor(
    format: TimestampFormat,
    private readonly places: TimePlaces,
    private readonly options: Pick<WriterOptions, 'timezone' | 'counters'>,
  ) {
    this.#read = compileTimestamp(format, options.timezone);
    if (isUndated(format)) this.undated = new UndatedReader(this.#read, lacksYear(format));
  }

  bind(column: ColumnBuilder): void {
    this.#column = intColumn(column);
  }

  write(line: ParsedLine): null {
    const place = this.places.time;
    const kind = place < 0 ? Kind.absent : line.kinds[place]!;
    if (kind === Kind.absent) return null;
    const year = this.undated === undefined ? null : yearOf(line, this.places.year);
    const isRead = kind !== Kind.other && !Number.isNaN(year) && this.#writeTime(line, place, year);
    if (!isRead) this.options.counters.addUnreadable(line, place);
    return null;
  }

  #writeTime(line: ParsedLine, place: number, year: number | null): boolean {
    const source = line.sources[place]!;
    const start = line.starts[place]!;
    const end = line.ends[place]!;
    const begin = this.undated?.begins ?? 0;
    if (end - start === this.#lastBytes && year === this.#lastYear && begin === this.#lastBegin) {
      if (sameBytes(source, start, this.#lastText, this.#lastBytes)) {
        this.#column!.setNumber(this.#lastTimeMs);
        return true;
      }
    }
    const timeMs = this.#readText(source, start, end, year);
    if (timeMs === null) return false;
    this.#column!.setNumber(timeMs);
    if (end - start > rememberedBytesMax) return true;
    for (let i = start; i < end; i++) this.#lastText[i - start] = source[i]!;
    this.#lastBytes = end - start;
    this.#lastYear = year;
    this.#lastBegin = begin;
    this.#lastTimeMs = timeMs;
    return true;
  }

  /** Reads the text with its blanks first, because they may belong to the layout; then without them. */
  #readText(source: Uint8Array, start: number, end: number, year: number | null): number | null {
    const read = (from: number, to: number): number | null => {
      const text = bytesText(source, from, to);
      return this.undated === undefined ? this.#read(text, 0) : this.undated.read(text, year);
    };
    const timeMs = read(start, end);
    if (timeMs !== null) return timeMs;
    const from = skipBlanks(source, start, end);
    const to = trimBlanks(source, from, end);
    return to - from < end - start ? read(from, to) : null;
  }
}

function sameBytes(source: Uint8Array, start: number, text: Uint8Array, length: number): boolean {
  // Compare from the end, where the texts of successive times differ.
  for (let i = length - 1; i >= 0; i--) if (source[start + i] !== text[i]) return false;
  return true;
}

const yearShape = /^\d{4}$/;

/** The year that the line or its file's name gives for its times; null where there is none, NaN for an invalid one. */
function yearOf(line: ParsedLine, place: number): number | null {
  const text = place < 0 ? undefined : line.text(place);
  if (text === undefined || text === '') return null;
  return yearShape.test(text) ? Number(text) : NaN;
}

/** Reads times of a format without the year or without the date. */
class UndatedReader implements UndatedTimes {
  /** Number of `begin` calls. The same text may mean another time after each. */
  begins = 0;
  #writtenMs = 0;
  #walk: YearWalk | null = null;

  /** @param countsYears whether the texts have a date, so that years can be counted */
  constructor(
    private readonly reader: TimestampReader,
    private readonly countsYears: boolean,
  ) {}

  begin(writtenMs: number, place: YearPlace | undefined): void {
    this.begins++;
    this.#writtenMs = writtenMs;
    this.#walk = place === undefined || !this.countsYears ? null : new YearWalk(place);
  }

  get place(): YearPlace | undefined {
    return this.#walk?.place;
  }

  read(text: string, year: number | null): number | null {
    if (!this.countsYears) return this.reader(text, this.#writtenMs);
    return this.reader(text, this.#writtenMs, year ?? this.#yearsBack);
  }

  readonly #yearsBack = (latestMs: number): number => this.#walk?.step(latestMs) ?? 0;
}

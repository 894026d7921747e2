import { LinePattern } from '../patterns/line-pattern.js';
import type { SampleLine } from './candidate.js';

/** What an expression's parts are in lines. */
export interface PartTexts {
  /** Lines that the expression finds. */
  readonly lines: number;
  /** For each part its texts, of the lines in which it took part. */
  readonly texts: ReadonlyMap<string, readonly string[]>;
}

/** Matches lines with an expression and gathers what its parts take. */
export function partTexts(regex: string, lines: readonly SampleLine[]): PartTexts {
  const pattern = new LinePattern(regex);
  const { groupNames } = pattern;
  const texts = groupNames.map((): string[] => []);
  let matched = 0;
  for (const { bytes } of lines) {
    if (pattern.match(bytes, 0, bytes.length) !== true) continue;
    matched++;
    const { captures } = pattern;
    groupNames.forEach((_name, i) => {
      const from = captures[2 * i]!;
      if (from >= 0) texts[i]!.push(Buffer.from(bytes.subarray(from, captures[2 * i + 1]!)).toString());
    });
  }
  return { lines: matched, texts: new Map(groupNames.map((name, i) => [name, texts[i]!])) };
}

/** Lines without those that go on the one before, by an expression that finds the first line of a record: the records as single texts. */
export function recordsOf(lines: readonly SampleLine[], start: string | undefined): readonly SampleLine[] {
  if (start === undefined) return lines;
  const pattern = new LinePattern(start);
  const records: string[][] = [];
  for (const { text, bytes } of lines) {
    const begins = records.length === 0 || pattern.match(bytes, 0, bytes.length) === true;
    if (begins) records.push([text]);
    else records.at(-1)!.push(text);
  }
  return records.map((texts) => {
    const text = texts.join('\n');
    return { text, bytes: Buffer.from(text) };
  });
}

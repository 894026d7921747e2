import { LinePattern } from '../patterns/line-pattern.js';
import type { SampleLine } from './candidate.js';

/** The texts of an expression's named groups in lines. */
export interface PartTexts {
  /** Number of lines that the expression matches. */
  readonly lines: number;
  /** For each group, its texts in the lines where it took part. */
  readonly texts: ReadonlyMap<string, readonly string[]>;
}

/** Matches lines with an expression and collects the texts of its groups. */
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

/** Joins lines into records by an expression that matches the first line of a record. Without one, each line is a record. */
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

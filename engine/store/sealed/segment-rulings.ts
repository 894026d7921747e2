import type { FilterQuestion } from './filter-question.js';

/**
 * What is known of a row group: nothing yet (`unknown`); its rows may match (`mayMatch`); it was ruled out by bounds of times (`byTime`),
 * bounds of other values (`byZone`), value filters (`byValue`) or gram filters (`byGram`); or its filters could not be read (`failed`). A
 * row group that was ruled out becomes `counted` once the statistics include it.
 */
export const ruling = {
  unknown: 0,
  mayMatch: 1,
  byTime: 2,
  byZone: 3,
  byValue: 4,
  byGram: 5,
  failed: 6,
  counted: 7,
} as const;
export type Ruling = (typeof ruling)[keyof typeof ruling];

/**
 * What is known of the row groups of one segment for one query, and the answers of the filters to each question about each of them. The
 * state is a byte array, so that it can be sent to threads and back.
 */
export class SegmentRulings {
  #failure: unknown;

  /** @param bytes for each row group what is known of it; then, for each question, the answer for each row group */
  constructor(
    readonly rowGroups: number,
    questions: number,
    readonly bytes = new Uint8Array(SegmentRulings.sizeBytes(rowGroups, questions)),
  ) {}

  /** Number of bytes of the state. */
  static sizeBytes(rowGroups: number, questions: number): number {
    return rowGroups * (1 + questions);
  }

  /** The error of reading the filters of the row groups that are `failed`. */
  get failure(): unknown {
    return this.#failure;
  }

  of(rowGroup: number): Ruling {
    return this.bytes[rowGroup]! as Ruling;
  }

  set(rowGroup: number, said: Ruling): void {
    this.bytes[rowGroup] = said;
  }

  /** The row groups that may match. */
  left(): readonly number[] {
    const found: number[] = [];
    for (let rowGroup = 0; rowGroup < this.rowGroups; rowGroup++)
      if (this.bytes[rowGroup] === ruling.mayMatch) found.push(rowGroup);
    return found;
  }

  /** The answer to question `question` for a row group. */
  answerTo(question: number, rowGroup: number): Ruling {
    return this.bytes[(1 + question) * this.rowGroups + rowGroup]! as Ruling;
  }

  /** Stores the answer to question `question` for a row group. */
  setAnswer(question: number, rowGroup: number, said: Ruling): void {
    this.bytes[(1 + question) * this.rowGroups + rowGroup] = said;
  }

  /** Whether a row group has no value that question `question` asks for. */
  isWithout(question: number, rowGroup: number): boolean {
    return this.answerTo(question, rowGroup) > ruling.mayMatch;
  }

  /** Rules out the row groups for which all questions of the filter that ends at `question` are answered by no. Returns the others. */
  ruleOut(question: number, { concludes }: FilterQuestion, rowGroups: readonly number[]): readonly number[] {
    if (concludes === 0) return rowGroups;
    return rowGroups.filter((rowGroup) => {
      let ruledBy: Ruling = ruling.unknown;
      for (let each = question - concludes + 1; each <= question; each++) {
        const said = this.answerTo(each, rowGroup);
        if (said <= ruling.mayMatch) return true;
        if (said > ruledBy) ruledBy = said;
      }
      this.set(rowGroup, ruledBy);
      return false;
    });
  }

  /** A copy of the bytes in which these row groups are `mayMatch` and all others `unknown`. */
  bytesAsking(rowGroups: readonly number[]): Uint8Array<ArrayBuffer> {
    const bytes = this.bytes.slice().fill(ruling.unknown, 0, this.rowGroups);
    for (const rowGroup of rowGroups) bytes[rowGroup] = ruling.mayMatch;
    return bytes;
  }

  /** Copies what is known of row groups from the bytes of another object for the same segment. */
  take(rowGroups: readonly number[], known: Uint8Array): void {
    for (let at = 0; at < this.bytes.length; at += this.rowGroups)
      for (const rowGroup of rowGroups) this.bytes[at + rowGroup] = known[at + rowGroup]!;
  }

  /** Notes that the filters of row groups could not be read. (Damaged filters can be read, and rule nothing out.) */
  fail(rowGroups: readonly number[], error: unknown): void {
    this.#failure = error;
    for (const rowGroup of rowGroups) this.set(rowGroup, ruling.failed);
  }
}

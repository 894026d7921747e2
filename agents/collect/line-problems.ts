import type { FieldDefinition } from '../definition/definition.js';
import type { RejectedLine } from '../../engine/index.js';
import { describeLacking, isNoValue, joinUnreadable, type UnreadableField } from '../decode/value-writer.js';
import type { CollectLog } from './logs/collect-log.js';

/** A log whose lines are all rejected would otherwise cause a message per commit. */
const everyMs = 60_000;

/** Limit on the bytes of a rejected line that a message shows. */
const exampleBytesMax = 200;

/** What the lines of one commit lost. */
export interface CommitProblems {
  readonly rejected: readonly RejectedLine[];
  /** Number of the rejected lines that were not kept. */
  readonly notKept: number;
  readonly unreadable: readonly UnreadableField[];
  /** Number of NULs before lines, which were left out. */
  readonly nulBytes: number;
}

/**
 * Tells what became of an agent's lines that are not in its records as they were written: at most once a minute, with counts
 * and an example.
 */
export class LineProblems {
  #rejected = 0;
  #notKept = 0;
  #nulBytes = 0;
  #example: { readonly file: string; readonly offset: number; readonly text: string } | null = null;
  readonly #unreadable = new Map<number, UnreadableField>();
  /** Fields without a column, each told once; `#lacking` are those to tell. */
  readonly #lackingKnown = new Set<number>();
  #lacking: UnreadableField[] = [];
  #toldMs = -Infinity;

  constructor(
    private readonly agent: string,
    private readonly fields: readonly FieldDefinition[],
    private readonly now: () => number,
    private readonly log: CollectLog,
  ) {}

  /** Adds what a commit lost. */
  add({ rejected, notKept, unreadable, nulBytes }: CommitProblems): void {
    this.#rejected += rejected.length;
    this.#notKept += notKept;
    this.#nulBytes += nulBytes;
    joinUnreadable(
      this.#unreadable,
      unreadable.filter(({ example }) => !isNoValue(example)),
    );
    for (const each of unreadable) {
      if (each.lackedBy === undefined || this.#lackingKnown.has(each.field)) continue;
      this.#lackingKnown.add(each.field);
      this.#lacking.push(each);
    }
    const [first] = rejected;
    if (first === undefined || this.#example !== null) return;
    const line = Buffer.from(first.line.subarray(0, exampleBytesMax)).toString();
    const cut = first.line.length > exampleBytesMax ? ' and more' : '';
    const text = `${JSON.stringify(line)}${cut} (${first.reason})`;
    this.#example = { file: first.file, offset: first.offset, text };
  }

  /** Tells what was added since the last message, unless that is less than a minute ago. `isLast` says that nothing follows. */
  tell(isLast = false): void {
    const nowMs = this.now();
    const sinceMs = nowMs - this.#toldMs;
    // A clock that went back must not delay the message.
    if (!isLast && sinceMs >= 0 && sinceMs < everyMs) return;
    const values = [...this.#unreadable.values()].reduce((sum, each) => sum + each.values, 0);
    if (this.#rejected + values + this.#nulBytes + this.#lacking.length === 0) return;
    const example = this.#example;
    this.log.warn(
      {
        agent: this.agent,
        rejected: this.#rejected,
        ...(this.#notKept === 0 ? {} : { notKept: this.#notKept }),
        unreadable: values,
        nulBytes: this.#nulBytes,
        ...(example === null ? {} : { file: example.file, offset: example.offset }),
      },
      this.#message(values),
    );
    this.#toldMs = nowMs;
    this.#rejected = this.#notKept = this.#nulBytes = 0;
    this.#example = null;
    this.#unreadable.clear();
    this.#lacking = [];
  }

  #message(values: number): string {
    const parts: string[] = [];
    if (this.#example !== null) parts.push(`${this.#rejected} rejected, such as ${this.#example.text}`);
    if (this.#notKept > 0)
      parts.push(
        `${this.#notKept} of them were counted but not kept: the kept ones have reached rejected.max_bytes. Correct the pattern ` +
          `and load them (logstrata load ${this.agent} --rejected), or raise rejected.max_bytes`,
      );
    const [field] = [...this.#unreadable.values()].toSorted((a, b) => b.values - a.values);
    if (field !== undefined) {
      const { name, type } = this.fields[field.field]!;
      const example = JSON.stringify(field.example);
      parts.push(`${values} values unreadable and null, such as ${example} for ${name}, which is ${type}`);
    }
    if (this.#nulBytes > 0)
      parts.push(
        `${this.#nulBytes} NUL bytes before lines left out, as a truncation or a power cut leaves them`,
      );
    for (const each of this.#lacking) parts.push(describeLacking(each, this.fields));
    return `lines of logs: ${parts.join('; ')}`;
  }
}

import { createHash } from 'node:crypto';
import { formatCursor, parseCursor, type JointPosition, type Position } from '../core/cursor.js';

const pattern = /^[0-9a-f]{8}\.[1-9][0-9]?(?:\.[0-9a-f]{16})+$/;
/** The cursor that is before every record, of one agent or of several. */
export const firstCursor = '0'.repeat(16);

/** What is wrong with a text that is no cursor of these agents. */
export class CursorProblem {
  constructor(readonly message: string) {}
}

/** The cursors of several agents, named in this order. */
export class SeveralCursors {
  /** The first eight hexadecimal digits of the SHA-256 hash of the names joined by commas. */
  readonly #digest: string;
  readonly #count: number;

  constructor(names: readonly string[]) {
    this.#digest = createHash('sha256').update(names.join()).digest('hex').slice(0, 8);
    this.#count = names.length;
  }

  /** The beginning of the cursors of an agent's records. */
  headOf(agent: number): string {
    return `${this.#digest}.${agent + 1}`;
  }

  format({ agent, of }: JointPosition): string {
    return [this.headOf(agent), ...of.map(formatCursor)].join('.');
  }

  /** The beginning, which is before every record, has no position of an agent. */
  parse(text: string): JointPosition | Position | CursorProblem {
    if (text === firstCursor) return { partition: 0, ordinal: 0 };
    if (!pattern.test(text)) {
      const isPlain = parseCursor(text) !== undefined;
      return new CursorProblem(isPlain ? 'is a cursor of one agent' : 'is no cursor');
    }
    const [digest, number, ...positions] = text.split('.');
    if (positions.length !== this.#count)
      return new CursorProblem(`is a cursor of ${positions.length} agents, but ${this.#count} are asked`);
    const agent = Number(number) - 1;
    if (digest !== this.#digest || agent >= this.#count)
      return new CursorProblem('is a cursor of other agents, or of the same in another order');
    const of = positions.map((position) => parseCursor(position)!);
    return { ...of[agent]!, agent, of };
  }
}

/** A joint position; undefined where it is the beginning, or none is given. */
export function jointOf(position: Position | undefined): JointPosition | undefined {
  return position !== undefined && 'of' in position ? (position as JointPosition) : undefined;
}

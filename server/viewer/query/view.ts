import type { Filter } from './filter.js';
import type { TimeRange } from './time-range.js';

/** A column of the table. */
export interface Column {
  readonly name: string;
  /** In pixels; of its own width where nobody has changed it. */
  readonly width?: number | undefined;
}

/** All that the address holds: who has it sees the same. */
export interface View {
  readonly agent: string;
  readonly filters: readonly Filter[];
  readonly range: TimeRange;
  /** Text that is searched for, and the field in which; any that holds text where none is said. */
  readonly text: string;
  readonly textField?: string | undefined;
  /** The agent's usual ones where none are said. */
  readonly columns: readonly Column[];
  readonly isWrapped: boolean;
  /** The field by which the histogram is split. Empty: not split; undefined: by the field that says how bad a record is. */
  readonly split?: string | undefined;
  /** The record that is open. */
  readonly cursor?: string | undefined;
  /** The open record is shown among its neighbours, without filters. */
  readonly isContext: boolean;
  readonly isLive: boolean;
  /** The newest record is above all others. */
  readonly isNewestFirst: boolean;
}

/** The view of an agent that nobody has changed. */
export const plainView: View = {
  agent: '',
  filters: [],
  range: { kind: 'all' },
  text: '',
  columns: [],
  isWrapped: false,
  isContext: false,
  isLive: false,
  isNewestFirst: false,
};

/** Whether both views ask for the same records. */
export function asksTheSame(one: View, other: View): boolean {
  return (
    one.agent === other.agent &&
    one.text === other.text &&
    one.textField === other.textField &&
    sameData(one.filters, other.filters) &&
    sameData(one.range, other.range)
  );
}

function sameData(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

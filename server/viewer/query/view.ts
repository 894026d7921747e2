import type { Filter } from './filter.js';
import type { TimeRange } from './time-range.js';

/** A column of the table. */
export interface Column {
  readonly name: string;
  /** In pixels; undefined for the default width. */
  readonly width?: number | undefined;
}

/** What the table shows. The address of the page contains all of it, so the address can be shared. */
export interface View {
  readonly agent: string;
  readonly filters: readonly Filter[];
  readonly range: TimeRange;
  /** The text to search for, and the field to search in; undefined for all string fields. */
  readonly text: string;
  readonly textField?: string | undefined;
  /** Empty for the default columns. */
  readonly columns: readonly Column[];
  readonly isWrapped: boolean;
  /** The field by which the histogram is split. Empty: not split; undefined: by the severity field. */
  readonly split?: string | undefined;
  /** The cursor of the open record. */
  readonly cursor?: string | undefined;
  /** Whether the open record is shown among its neighbours, without filters. */
  readonly isContext: boolean;
  readonly isLive: boolean;
  /** Whether the newest record is at the top. */
  readonly isNewestFirst: boolean;
}

/** The default view. */
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

/** Whether both views request the same records. */
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

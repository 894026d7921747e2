import { useComputed } from '@preact/signals';
import { memo } from './memo.js';
import { usePage } from '../parts/viewer-context.js';
import { isSearched } from '../query/field.js';
import type { LogRecord } from '../records/record.js';
import type { Zone } from '../records/time-text.js';
import { severityOf } from '../state/severity.js';
import type { Page } from '../window/window-state.js';
import { CellText } from './cell-text.js';
import type { LaidColumn } from './layout.js';

/** The id of the DOM element of a row. */
export function rowId(cursor: string): string {
  return `r${cursor}`;
}

/** What the rendering of rows depends on. The object stays the same while nothing has changed, so rows need not be rendered again. */
export interface RowStyle {
  readonly columns: readonly LaidColumn[];
  readonly zone: Zone;
  readonly searchedField: string | undefined;
  readonly searchText: string;
  readonly splitField: string | undefined;
  readonly isNewestFirst: boolean;
  readonly isWrapped: boolean;
}

interface RowProps {
  readonly record: LogRecord;
  readonly style: RowStyle;
  readonly isCurrent: boolean;
}

function Row({ record, style, isCurrent }: RowProps) {
  const { cursor, values } = record;
  const { columns, zone, searchText, searchedField, splitField, isWrapped } = style;
  const severity = severityOf(splitField === undefined ? undefined : values.get(splitField));
  return (
    <div
      role="row"
      id={rowId(cursor)}
      data-cursor={cursor}
      class={`row is-${severity} ${isCurrent ? 'is-current' : ''}`}
      aria-selected={isCurrent}
    >
      {columns.map(({ field, role }) => (
        <span key={field.name} role="gridcell" class={`cell for-${role}`}>
          <CellText
            field={field}
            value={values.get(field.name)}
            zone={zone}
            searchText={isSearched(field, searchedField) ? searchText : ''}
            isWrapped={isWrapped}
          />
        </span>
      ))}
    </div>
  );
}

interface PageProps {
  readonly page: Page;
  readonly style: RowStyle;
}

/** The rows of a page. They are rendered again only when the page changes, or when the current row enters or leaves it. */
export const PageRows = memo(function PageRows({ page, style }: PageProps) {
  const { screen } = usePage();
  // Only the current row of this page, so that a step from row to row does not render other pages.
  const current = useComputed(() => {
    const { value } = screen.current;
    return page.records.some(({ cursor }) => cursor === value) ? value : undefined;
  }).value;
  const records = style.isNewestFirst ? page.records.toReversed() : page.records;
  return (
    <div role="rowgroup" class="page-rows">
      {records.map((record) => (
        <Row key={record.cursor} record={record} style={style} isCurrent={record.cursor === current} />
      ))}
    </div>
  );
});

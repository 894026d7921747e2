import { useMemo } from 'preact/hooks';
import { FailureNotice } from '../parts/failure-notice.js';
import { usePage } from '../parts/viewer-context.js';
import { searchedField } from '../query/question.js';
import { countText } from '../records/count-text.js';
import { timeOfRecord } from '../state/extent.js';
import {
  emptyWindow,
  recordBy,
  type Edge,
  type EdgeState,
  type WindowState,
} from '../window/window-state.js';
import { ColumnHead } from './column-head.js';
import { layColumns } from './layout.js';
import { NoRecords } from './no-records.js';
import { PageRows, type RowStyle } from './rows.js';
import { Scroller } from './scroller.js';
import { TimeBar } from './time-bar.js';

function EdgeLine({ edge, state }: { readonly edge: Edge; readonly state: EdgeState }) {
  const { viewer } = usePage();
  const isOldest = edge === 'older';
  if (state.kind === 'failed')
    return <FailureNotice failure={state.failure} again={() => void viewer.window.extend(edge)} isSmall />;
  const { isLive } = viewer.view.value;
  const words = {
    more: '…',
    loading: '…',
    end: isOldest ? 'No older records' : isLive ? 'Waiting for records' : 'No newer records',
  }[state.kind];
  return <div class="edge-line">{words}</div>;
}

/** Notices about live records: how many are not shown as the user has scrolled away, and how many were inserted further up. */
function HeldNotice() {
  const { viewer } = usePage();
  const { unseenCount, isMore, behind, kind, failure } = viewer.tail.state.value;
  return (
    <div class="held" role="status">
      {unseenCount > 0 && (
        <button type="button" class="button is-main" onClick={() => void viewer.window.openNewest()}>
          {countText(unseenCount)}
          {isMore ? ' or more' : ''} new
        </button>
      )}
      {behind !== undefined && (
        <button type="button" class="button is-outlined" onClick={() => viewer.showBehind(behind.lowest)}>
          {countText(behind.count)} came late, further up
        </button>
      )}
      {kind === 'failed' && failure !== undefined && (
        <span class="held-failure">
          {failure.title}: {failure.detail}. Going on from the last record as soon as it answers.
        </span>
      )}
    </div>
  );
}

function Rows({ state, style }: { readonly state: WindowState; readonly style: RowStyle }) {
  const pages = style.isNewestFirst ? state.pages.toReversed() : state.pages;
  const [above, below]: readonly [Edge, Edge] = style.isNewestFirst ? ['newer', 'older'] : ['older', 'newer'];
  return (
    <>
      <EdgeLine edge={above} state={state[above]} />
      {pages.map((page) => (
        <PageRows key={page.key} page={page} style={style} />
      ))}
      <EdgeLine edge={below} state={state[below]} />
    </>
  );
}

function useRowStyle(): RowStyle {
  const { viewer } = usePage();
  const view = viewer.view.value;
  const fields = viewer.fields.value;
  const columns = viewer.columns.value;
  const zone = viewer.preferences.zone.value;
  const splitField = viewer.split.value;
  return useMemo(
    () => ({
      columns: layColumns(columns, fields),
      zone,
      searchText: view.isContext ? '' : view.text,
      searchedField: searchedField(view, fields),
      splitField,
      isNewestFirst: view.isNewestFirst,
      isWrapped: view.isWrapped,
    }),
    [
      columns,
      fields,
      zone,
      splitField,
      view.text,
      view.textField,
      view.isContext,
      view.isNewestFirst,
      view.isWrapped,
    ],
  );
}

/** The table of records. */
export function RecordTable() {
  const { viewer, screen } = usePage();
  const known = viewer.window.state.value;
  // Until the fields are known there are no columns, and the rows would be scrolled to a wrong position.
  const state = viewer.agents.value.fields === undefined ? emptyWindow : known;
  const view = viewer.view.value;
  const style = useRowStyle();
  const tracks = style.columns.map(({ track }) => track).join(' ');
  const moved = (first: string | undefined, last: string | undefined, isAtNewest: boolean): void => {
    viewer.tail.setSeen(view.isNewestFirst ? first : last, isAtNewest);
    const ends = [first, last].flatMap((cursor) => {
      const record = cursor === undefined ? undefined : recordBy(viewer.window.state.peek(), cursor);
      return record === undefined ? [] : [timeOfRecord(record, viewer.timeField.peek())];
    });
    if (ends.length > 0) screen.visible.value = { sinceMs: Math.min(...ends), untilMs: Math.max(...ends) };
  };
  const click = (event: MouseEvent): void => {
    const row = (event.target as Element).closest<HTMLElement>('[data-cursor]');
    const cursor = row?.dataset['cursor'];
    // A click that ends the selection of text does not open the record: the user may want to copy the text.
    if (cursor === undefined || (getSelection()?.toString() ?? '') !== '') return;
    screen.current.value = cursor;
    viewer.change({ cursor });
  };
  const isEmpty = state.pages.length === 0;
  return (
    <main
      class={`table ${view.isWrapped ? 'is-wrapped' : ''} is-${state.status}`}
      aria-busy={state.status === 'loading'}
    >
      <div class="table-body" onClick={click}>
        <Scroller
          window={viewer.window}
          state={state}
          isNewestFirst={view.isNewestFirst}
          isFollowing={viewer.tail.state.value.kind !== 'off'}
          moved={moved}
          style={{ '--tracks': tracks }}
        >
          <div role="rowgroup" class="head-group">
            <div role="row" class="head-row">
              {style.columns.map((column) => (
                <ColumnHead key={column.field.name} column={column} />
              ))}
            </div>
          </div>
          {isEmpty ? (
            <div role="row">
              <div role="gridcell">
                <NoRecords />
              </div>
            </div>
          ) : (
            <Rows state={state} style={style} />
          )}
        </Scroller>
        <HeldNotice />
      </div>
      <TimeBar />
    </main>
  );
}

import { Chips } from '../bar/chips.js';
import { TopBar } from '../bar/top-bar.js';
import { Histogram } from '../chart/histogram.js';
import { FieldsPane } from '../fields/fields-pane.js';
import { PageContext, type Page } from '../parts/viewer-context.js';
import { RecordPanel } from '../record/record-panel.js';
import { RecordTable } from '../table/record-table.js';
import { Help } from './help.js';
import { StatusBar } from './status-bar.js';

function ContextLine({ page: { viewer } }: { readonly page: Page }) {
  if (!viewer.view.value.isContext) return null;
  return (
    <div class="context-line" role="status">
      Neighbours of one record: filters and the time range are off.
      <button type="button" class="button is-outlined" onClick={() => viewer.change({ isContext: false })}>
        Back to the matching records
      </button>
    </div>
  );
}

/** The root component of the page. */
export function App({ page }: { readonly page: Page }) {
  const { viewer, screen } = page;
  const { cursor, isContext } = viewer.view.value;
  const states = `${cursor === undefined ? '' : 'has-record'} ${isContext ? 'is-context' : ''}`;
  return (
    <PageContext.Provider value={page}>
      <div class={`viewer ${states}`}>
        <TopBar />
        <Chips />
        <Histogram />
        <ContextLine page={page} />
        <div class="body">
          {viewer.preferences.hasFields.value && <FieldsPane />}
          <RecordTable />
          <RecordPanel />
        </div>
        <StatusBar />
        <Help />
        <div class="toast" role="status" aria-live="polite">
          {screen.toast.value}
        </div>
      </div>
    </PageContext.Provider>
  );
}

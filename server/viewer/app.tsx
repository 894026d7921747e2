import { useLayoutEffect, useRef } from 'preact/hooks';
import { Chips } from './filters.js';
import { TopBar } from './top-bar.js';
import { Histogram } from './histogram.js';
import { FieldsPane } from './fields-pane.js';
import { Button, PageContext, type Page, usePage } from './parts.js';
import { RecordPanel } from './record-panel.js';
import { RecordTable } from './record-table.js';
import { keyHelp } from './keys.js';
import { countText, shortTimeText, zoneName } from './state/texts.js';

function ContextLine({ page: { viewer } }: { readonly page: Page }) {
  if (!viewer.view.value.isContext) return null;
  return (
    <div class="context-line" role="status">
      Neighbours of one record: filters and the time range are off.
      <Button look="outlined" onClick={() => viewer.change({ isContext: false })}>
        Back to the matching records
      </Button>
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

/** The dialog that lists all keyboard shortcuts. */
function Help() {
  const { screen } = usePage();
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = screen.menu.value === 'help';
  // A layout effect runs before the next key event, which may close the dialog.
  useLayoutEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  // Browsers send `close` later; by then a key may have opened the dialog again.
  const closed = (): void => {
    if (isOpen && dialog.current?.open === false) screen.close();
  };
  return (
    <dialog ref={dialog} class="help" aria-label="Keys" onClose={closed}>
      <h2>Keys</h2>
      <dl>
        {keyHelp.map(({ keys, what }) => (
          <div key={what}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <Button look="main" onClick={() => screen.close()}>
        Close
      </Button>
    </dialog>
  );
}

const byteUnits: readonly (readonly [number, string])[] = [
  [1e9, 'GB'],
  [1e6, 'MB'],
  [1e3, 'kB'],
];

function bytesText(bytes: number): string {
  for (const [size, unit] of byteUnits) if (bytes >= size) return `${(bytes / size).toPrecision(3)} ${unit}`;
  return `${bytes} bytes`;
}

/** The cost of a query from the header `Server-Timing`: `12 ms · 65,536 rows scanned · 1.20 MB read`. */
function queryCost(timing: string): string {
  const entries = new Map(
    timing.split(',').map((entry) => {
      const [name = '', ...facts] = entry.trim().split(';');
      return [name, facts.join(';')] as const;
    }),
  );
  const numberIn = (name: string, mark: string): number | undefined => {
    const text = entries.get(name);
    const at = text?.indexOf(mark) ?? -1;
    return at < 0 ? undefined : Number.parseFloat(text!.slice(at + mark.length));
  };
  const first = numberIn('first', 'dur=');
  const rows = numberIn('rows', 'desc="');
  const read = numberIn('read', 'desc="');
  const parts = [
    first === undefined ? undefined : `${first < 10 ? first.toFixed(1) : Math.round(first)} ms`,
    rows === undefined || Number.isNaN(rows) ? undefined : `${countText(rows)} rows scanned`,
    read === undefined || Number.isNaN(read) ? undefined : `${bytesText(read)} read`,
  ];
  return parts.filter((part) => part !== undefined).join(' · ');
}

/** The bar at the bottom: the visible time range, the cost of the query, and the time zone. */
function StatusBar() {
  const { viewer, screen } = usePage();
  const zone = viewer.preferences.zone.value;
  const visible = screen.visible.value;
  const { timing, pages, status } = viewer.window.state.value;
  const cost = queryCost(timing);
  return (
    <footer class="status-bar">
      <span class="status-visible">
        {visible !== undefined && pages.length > 0
          ? `In sight: ${shortTimeText(visible.sinceMs, zone)} – ${shortTimeText(visible.untilMs, zone)}`
          : ''}
      </span>
      <span class="status-cost" title="What the last page cost the server">
        {status !== 'loading' ? cost : viewer.agents.value.failure === undefined ? 'asking…' : ''}
      </span>
      <Button
        look="quiet"
        title="Time zone of the times shown (u)"
        onClick={() => (viewer.preferences.zone.value = zone === 'utc' ? 'local' : 'utc')}
      >
        {zoneName(zone)}
      </Button>
    </footer>
  );
}

import { usePage } from '../parts/viewer-context.js';
import { shortTimeText, zoneName } from '../records/time-text.js';
import { queryCost } from '../state/query-cost.js';

/** The bar at the bottom: the visible time range, the cost of the query, and the time zone. */
export function StatusBar() {
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
      <button
        type="button"
        class="button is-quiet"
        title="Time zone of the times shown (u)"
        onClick={() => (viewer.preferences.zone.value = zone === 'utc' ? 'local' : 'utc')}
      >
        {zoneName(zone)}
      </button>
    </footer>
  );
}

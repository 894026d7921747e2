import { Icon } from '../parts/icon.js';
import { usePage } from '../parts/viewer-context.js';
import { DisplayMenu } from './display-menu.js';
import { DownloadMenu } from './download-menu.js';
import { RangeMenu } from './range-menu.js';
import { SearchBox } from './search-box.js';
import { ViewsMenu } from './views-menu.js';

function AgentChoice() {
  const { viewer } = usePage();
  const { names = [] } = viewer.agents.value;
  const { agent } = viewer.view.value;
  const all = names.includes(agent) || agent === '' ? names : [agent, ...names];
  const choose = (name: string): void =>
    viewer.change({
      agent: name,
      filters: [],
      text: '',
      textField: undefined,
      columns: [],
      split: undefined,
      cursor: undefined,
      isContext: false,
    });
  return (
    <select
      class="agent-choice"
      aria-label="Agent"
      title="Agent"
      value={agent}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      {all.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}

function LiveButton() {
  const { viewer } = usePage();
  const { isLive } = viewer.view.value;
  const { kind } = viewer.tail.state.value;
  const words = { off: 'Live', connecting: 'Live…', open: 'Live', failed: 'Live: waiting' }[kind];
  return (
    <button
      type="button"
      class={`button live is-${kind} ${isLive ? 'is-on' : ''}`}
      aria-pressed={isLive}
      title="Show records as they come (l)"
      onClick={() => viewer.toggleLive()}
    >
      <span class="live-dot" aria-hidden="true" />
      {words}
    </button>
  );
}

/** The bar at the top: agent, search, filters and time range. */
export function TopBar() {
  const { viewer, screen } = usePage();
  const { hasFields } = viewer.preferences;
  return (
    <header class="top-bar">
      <h1 class="brand" title="Logstrata">
        <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden="true">
          <rect class="stratum-1" x="1" y="2" width="14" height="3" rx="1" />
          <rect class="stratum-2" x="1" y="6.5" width="10" height="3" rx="1" />
          <rect class="stratum-3" x="1" y="11" width="14" height="3" rx="1" />
        </svg>
        <span>Logstrata</span>
      </h1>
      <AgentChoice />
      <SearchBox />
      <RangeMenu />
      <button
        type="button"
        class="button"
        aria-label="Ask again"
        title="Ask again (r)"
        onClick={() => viewer.askAgain()}
      >
        <Icon name="again" />
      </button>
      <LiveButton />
      <div class="top-tools">
        <button
          type="button"
          class={`button ${hasFields.value ? 'is-on' : ''}`}
          aria-pressed={hasFields.value}
          aria-label="Fields"
          title="Fields (s)"
          onClick={() => (hasFields.value = !hasFields.value)}
        >
          <Icon name="fields" />
        </button>
        <ViewsMenu />
        <DownloadMenu />
        <DisplayMenu />
        <button
          type="button"
          class="button"
          aria-label="Keys"
          title="Keys (?)"
          aria-haspopup="dialog"
          onClick={() => screen.toggle('help')}
        >
          <Icon name="help" />
        </button>
      </div>
    </header>
  );
}

import { useState } from 'preact/hooks';
import { Button, Icon, Menu, TokenForm, usePage } from './parts.js';
import type { Theme, KeptView } from './state/kept-views.js';
import { failureOfError } from './state/failure.js';
import { agentField } from './state/field.js';
import { countText, durationText, readDuration, readTime, timeText, zoneName } from './state/texts.js';
import {
  rangeText,
  shifted,
  usualLengths,
  widened,
  type TimeRange,
  addressOf,
  searchedField,
  viewText,
  requestPath,
  type Question,
} from './state/view.js';
import { readBody, type ServerClient } from './state/requests.js';

interface CheckProps {
  readonly text: string;
  readonly isOn: boolean;
  readonly toggle: (isOn: boolean) => void;
}

function Check({ text, isOn, toggle }: CheckProps) {
  return (
    <label class="check">
      <input type="checkbox" checked={isOn} onChange={(event) => toggle(event.currentTarget.checked)} />
      {text}
    </label>
  );
}

function ThemeChoice() {
  const { theme } = usePage().viewer.preferences;
  return (
    <label class="form-row">
      Colours
      <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value as Theme)}>
        <option value="auto">as the system</option>
        <option value="light">light</option>
        <option value="dark">dark</option>
      </select>
    </label>
  );
}

/** The menu with options of the display; none of them changes which records are requested. */
export function DisplayMenu() {
  const { viewer } = usePage();
  const { isWrapped, isNewestFirst } = viewer.view.value;
  const { zone, hasHistogram } = viewer.preferences;
  return (
    <Menu name="display" button={<Icon name="sliders" />} label="Display" side="right">
      <div class="display-menu">
        <Check
          text="Wrap long lines (w)"
          isOn={isWrapped}
          toggle={(isOn) => viewer.change({ isWrapped: isOn })}
        />
        <Check
          text="Newest records first (n)"
          isOn={isNewestFirst}
          toggle={(isOn) => viewer.change({ isNewestFirst: isOn })}
        />
        <Check
          text="Histogram (h)"
          isOn={hasHistogram.value}
          toggle={(isOn) => (hasHistogram.value = isOn)}
        />
        <Check
          text="Times in UTC (u)"
          isOn={zone.value === 'utc'}
          toggle={(isOn) => (zone.value = isOn ? 'utc' : 'local')}
        />
        <ThemeChoice />
        <Button look="outlined" onClick={() => viewer.change({ columns: [] })}>
          Default columns
        </Button>
        <hr />
        <TokenForm done={() => viewer.askAgain()} />
      </div>
    </Menu>
  );
}

const limits = [1000, 10_000, 100_000, 1_000_000];

/** The menu to download the matching records as a file. */
export function DownloadMenu() {
  const { viewer, screen } = usePage();
  const [wrong, setWrong] = useState('');
  const { kind, count } = viewer.counted.value;
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const shown = viewer.columns.value.map(({ name }) => name);
    const ask: DownloadForm = {
      format: form.get('format') === 'csv' ? 'csv' : 'jsonl',
      limit: Number(form.get('limit')),
      fields: form.get('fields') === 'all' ? undefined : shown.filter((name) => name !== agentField.name),
    };
    setWrong('');
    try {
      await saveDownload(
        viewer.server,
        downloadPath(viewer.question(), ask),
        `${viewer.view.value.agent}.${ask.format}`,
      );
      screen.close();
    } catch (error) {
      const { title, detail } = failureOfError(error);
      setWrong(`${title}: ${detail}`);
    }
  };
  return (
    <Menu name="download" button={<Icon name="download" />} label="Download (d)" side="right">
      <form class="download-menu form-lines" onSubmit={(event) => void save(event)}>
        <p>
          {kind !== 'ready' || count === undefined ? 'Matching records' : `${countText(count)} records match`}
          , the oldest first in the file.
        </p>
        <label class="form-row">
          Form
          <select name="format">
            <option value="jsonl">JSON Lines</option>
            <option value="csv">CSV</option>
          </select>
        </label>
        <label class="form-row">
          Fields
          <select name="fields">
            <option value="shown">the columns of the table</option>
            <option value="all">all</option>
          </select>
        </label>
        <label class="form-row">
          At most
          <select name="limit" defaultValue="10000">
            {limits.map((limit) => (
              <option key={limit} value={limit} selected={limit === 10_000}>
                the newest {countText(limit)}
              </option>
            ))}
          </select>
        </label>
        {wrong !== '' && (
          <p class="wrong" role="alert">
            {wrong}
          </p>
        )}
        <button class="button is-main">Download</button>
      </form>
    </Menu>
  );
}

const words: Readonly<Record<string, string>> = {
  '5m': '5 minutes',
  '15m': '15 minutes',
  '1h': 'hour',
  '6h': '6 hours',
  '1d': 'day',
  '7d': '7 days',
  '30d': '30 days',
};

function LastForm({ choose }: ChooseProps) {
  const [isWrong, setWrong] = useState(false);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const length = String(new FormData(event.currentTarget as HTMLFormElement).get('length'));
    const lengthMs = readDuration(length);
    setWrong(lengthMs === undefined);
    if (lengthMs !== undefined) choose({ kind: 'last', length });
  };
  return (
    <form class="form-line" onSubmit={submit}>
      <label>
        Last
        <input
          name="length"
          class="input is-short"
          placeholder="1d 12h"
          aria-invalid={isWrong}
          autocomplete="off"
        />
      </label>
      <button class="button is-outlined">Show</button>
      {isWrong && (
        <p class="wrong" role="alert">
          A length is 90s, 15m, 12h or 7d, also combined.
        </p>
      )}
    </form>
  );
}

function BetweenForm({ choose }: ChooseProps) {
  const { viewer } = usePage();
  const zone = viewer.preferences.zone.value;
  const { sinceMs, untilMs } = viewer.extent.value;
  const [wrong, setWrong] = useState('');
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const read = (name: string): { text: string; timeMs: number | undefined } => {
      const text = String(form.get(name)).trim();
      return { text, timeMs: text === '' ? undefined : readTime(text, zone) };
    };
    const since = read('since');
    const until = read('until');
    const unread = [since, until].find(({ text, timeMs }) => text !== '' && timeMs === undefined);
    if (unread !== undefined)
      return setWrong(`"${unread.text}" is not a time: write 2026-11-18 10:00:00, or only a date.`);
    if ((since.timeMs ?? -Infinity) >= (until.timeMs ?? Infinity))
      return setWrong('The range ends before it begins.');
    setWrong('');
    const isAll = since.timeMs === undefined && until.timeMs === undefined;
    choose(isAll ? { kind: 'all' } : { kind: 'between', sinceMs: since.timeMs, untilMs: until.timeMs });
  };
  return (
    <form class="form-lines" onSubmit={submit} key={`${sinceMs} ${untilMs} ${zone}`}>
      <label>
        From
        <input name="since" class="input" defaultValue={timeText(sinceMs, zone)} autocomplete="off" />
      </label>
      <label>
        Before
        <input name="until" class="input" defaultValue={timeText(untilMs, zone)} autocomplete="off" />
      </label>
      {wrong !== '' && (
        <p class="wrong" role="alert">
          {wrong}
        </p>
      )}
      <div class="form-line">
        <button class="button is-main">Show</button>
        <span class="hint">{zoneName(zone)}</span>
      </div>
    </form>
  );
}

interface ChooseProps {
  readonly choose: (range: TimeRange) => void;
}

function Lengths({ choose }: ChooseProps) {
  const { range } = usePage().viewer.view.value;
  return (
    <div class="range-lengths">
      <Button isPressed={range.kind === 'all'} onClick={() => choose({ kind: 'all' })}>
        All time
      </Button>
      {usualLengths.map((length) => (
        <Button
          key={length}
          isPressed={range.kind === 'last' && range.length === length}
          onClick={() => choose({ kind: 'last', length })}
        >
          Last {words[length]}
        </Button>
      ))}
    </div>
  );
}

function Moves({ choose }: ChooseProps) {
  const extent = usePage().viewer.extent.value;
  return (
    <div class="form-line">
      <Button look="outlined" title="Earlier ([)" onClick={() => choose(shifted(extent, -1))} icon="left">
        Earlier
      </Button>
      <Button look="outlined" title="Later (])" onClick={() => choose(shifted(extent, 1))}>
        Later <Icon name="right" />
      </Button>
      <Button look="outlined" onClick={() => choose(widened(extent))}>
        Wider
      </Button>
    </div>
  );
}

/** The menu for the time range: a length up to now, two times, or a range next to the current one. */
export function RangeMenu() {
  const { viewer, screen } = usePage();
  const { range } = viewer.view.value;
  const zone = viewer.preferences.zone.value;
  const extent = viewer.extent.value;
  const choose = (chosen: TimeRange): void => {
    viewer.change({ range: chosen, cursor: undefined, isContext: false });
    screen.close();
  };
  const button = (
    <>
      <Icon name="clock" />
      <span class="range-text">{rangeText(range, zone)}</span>
    </>
  );
  return (
    <Menu
      name="range"
      button={button}
      label={`Time range: ${rangeText(range, zone)} (t)`}
      class="range"
      side="right"
    >
      <div class="range-menu">
        <Lengths choose={choose} />
        <div class="range-forms">
          <LastForm choose={choose} />
          <BetweenForm choose={choose} />
          <Moves choose={choose} />
          <p class="hint">
            Shown: {durationText(extent.untilMs - extent.sinceMs)}. Drag over the bars to look closer.
          </p>
        </div>
      </div>
    </Menu>
  );
}

function SaveForm() {
  const { viewer, screen } = usePage();
  const view = viewer.view.value;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget as HTMLFormElement).get('name')).trim();
    if (name === '') return;
    viewer.saved.put({ name, address: addressOf(view) });
    screen.tell(`Saved as “${name}”`);
  };
  return (
    <form class="form-line" onSubmit={submit}>
      <label class="grows">
        Save what is shown as
        <input
          name="name"
          class="input"
          maxLength={120}
          defaultValue={viewText(view, searchedField(view, viewer.fields.value))}
          autocomplete="off"
        />
      </label>
      <button class="button is-main">Save</button>
    </form>
  );
}

function ViewLink({ view }: { readonly view: KeptView }) {
  const { viewer, screen } = usePage();
  const open = (event: Event): void => {
    event.preventDefault();
    screen.close();
    viewer.openAddress(view.address);
  };
  return (
    <a class="view-link" href={view.address} title={view.address} onClick={open}>
      {view.name}
    </a>
  );
}

/** The menu with saved views and the history of queries, both stored in this browser. */
export function ViewsMenu() {
  const { viewer } = usePage();
  const saved = viewer.saved.views.value;
  const history = viewer.history.views.value;
  return (
    <Menu name="views" button={<Icon name="star" />} label="Saved views and history (v)" side="right">
      <div class="views-menu">
        <SaveForm />
        <h2>Saved in this browser</h2>
        {saved.length === 0 && <p class="hint">None yet.</p>}
        <ul class="view-list">
          {saved.map((view) => (
            <li key={view.name}>
              <ViewLink view={view} />
              <Button
                look="bare"
                label={`Remove ${view.name}`}
                title="Remove"
                onClick={() => viewer.saved.remove(view.name)}
                icon="close"
              />
            </li>
          ))}
        </ul>
        <h2>History</h2>
        <ul class="view-list">
          {history.map((view) => (
            <li key={view.address}>
              <ViewLink view={view} />
            </li>
          ))}
        </ul>
        {history.length > 1 && (
          <Button look="outlined" onClick={() => viewer.history.clear()}>
            Clear the history
          </Button>
        )}
      </div>
    </Menu>
  );
}

/** The options of a download. */
interface DownloadForm {
  readonly format: 'jsonl' | 'csv';
  /** Number of records: the newest of those that match. */
  readonly limit: number;
  /** The fields in this order; undefined for all. */
  readonly fields: readonly string[] | undefined;
}

/** The path of the request whose response is saved. */
function downloadPath(question: Question, { format, limit, fields }: DownloadForm): string {
  const more: (readonly [string, string])[] = [
    ['format', format],
    ['limit', String(limit)],
  ];
  if (fields !== undefined) more.push(['fields', fields.join(',')]);
  return requestPath('query', question, more);
}

/**
 * Saves a response as a file. The page sends the request itself instead of following a link, so that the token is sent, and an error is
 * shown in the page instead of being saved.
 */
async function saveDownload(server: ServerClient, path: string, name: string): Promise<void> {
  const response = await server.get(path);
  const blob = await readBody(() => response.blob());
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser needs the URL only until the click has been handled.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

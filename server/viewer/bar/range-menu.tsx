import { useState } from 'preact/hooks';
import { Icon } from '../parts/icon.js';
import { Menu } from '../parts/menu.js';
import { usePage } from '../parts/viewer-context.js';
import { rangeText, shifted, usualLengths, widened, type TimeRange } from '../query/time-range.js';
import { durationText, readDuration, readTime, timeText, zoneName } from '../records/time-text.js';

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
      <button
        type="button"
        class="button"
        aria-pressed={range.kind === 'all'}
        onClick={() => choose({ kind: 'all' })}
      >
        All time
      </button>
      {usualLengths.map((length) => (
        <button
          key={length}
          type="button"
          class="button"
          aria-pressed={range.kind === 'last' && range.length === length}
          onClick={() => choose({ kind: 'last', length })}
        >
          Last {words[length]}
        </button>
      ))}
    </div>
  );
}

function Moves({ choose }: ChooseProps) {
  const extent = usePage().viewer.extent.value;
  return (
    <div class="form-line">
      <button
        type="button"
        class="button is-outlined"
        title="Earlier ([)"
        onClick={() => choose(shifted(extent, -1))}
      >
        <Icon name="left" /> Earlier
      </button>
      <button
        type="button"
        class="button is-outlined"
        title="Later (])"
        onClick={() => choose(shifted(extent, 1))}
      >
        Later <Icon name="right" />
      </button>
      <button type="button" class="button is-outlined" onClick={() => choose(widened(extent))}>
        Wider
      </button>
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

import { Icon } from '../parts/icon.js';
import { Menu } from '../parts/menu.js';
import { TokenForm } from '../parts/token-form.js';
import { usePage } from '../parts/viewer-context.js';
import type { Theme } from '../state/preferences.js';

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
        <button type="button" class="button is-outlined" onClick={() => viewer.change({ columns: [] })}>
          Default columns
        </button>
        <hr />
        <TokenForm done={() => viewer.askAgain()} />
      </div>
    </Menu>
  );
}

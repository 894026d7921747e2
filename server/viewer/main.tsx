import { effect, signal } from '@preact/signals';
import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import { App } from './page/app.js';
import { listenToKeys } from './page/keys.js';
import { BrowserStore } from './state/browser-store.js';
import { openPreferences } from './state/preferences.js';
import { Screen } from './state/screen.js';
import { ViewStore } from './state/view-store.js';
import { Viewer } from './state/viewer.js';

const store = new BrowserStore(() => localStorage);
const narrow = matchMedia('(max-width: 760px)');
const preferences = openPreferences(store, narrow.matches);
const viewer = new Viewer(new ViewStore(window), preferences, store, new BrowserStore(() => sessionStorage));
const page = { viewer, screen: new Screen() };

const dark = matchMedia('(prefers-color-scheme: dark)');
const isSystemDark = signal(dark.matches);
dark.addEventListener('change', () => (isSystemDark.value = dark.matches));
effect(() => {
  const { value: theme } = preferences.theme;
  const isDark = theme === 'dark' || (theme === 'auto' && isSystemDark.value);
  // The style sheet goes first: who draws by its colours reads them when the signal changes.
  document.documentElement.dataset['theme'] = isDark ? 'dark' : 'light';
  page.screen.isDark.value = isDark;
});
effect(() => {
  const { agent } = viewer.view.value;
  document.title = agent === '' ? 'Logstrata' : `${agent} · Logstrata`;
});

effect(() => {
  const { cursor } = viewer.view.value;
  if (cursor !== undefined) page.screen.current.value = cursor;
});

const root = document.getElementById('viewer');
if (root === null) throw new Error('the page has no place for the viewer');
render(<App page={page} />, root);
listenToKeys(page);
viewer.start();

import { effect, signal, type ReadonlySignal } from '@preact/signals';
import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import { App } from './page/app.js';
import { listenToKeys } from './page/keys.js';
import { BrowserStore } from './state/browser-store.js';
import { openPreferences } from './state/preferences.js';
import { Screen } from './state/screen.js';
import { ViewStore } from './state/view-store.js';
import { Viewer } from './state/viewer.js';

/** A signal of whether a media query matches. */
function mediaSignal(query: string): ReadonlySignal<boolean> {
  const media = matchMedia(query);
  const matches = signal(media.matches);
  media.addEventListener('change', () => (matches.value = media.matches));
  return matches;
}

const store = new BrowserStore(() => localStorage);
const preferences = openPreferences(store, mediaSignal('(max-width: 760px)'));
const viewer = new Viewer(new ViewStore(window), preferences, store, new BrowserStore(() => sessionStorage));
const page = { viewer, screen: new Screen() };

const isSystemDark = mediaSignal('(prefers-color-scheme: dark)');
effect(() => {
  const { value: theme } = preferences.theme;
  const isDark = theme === 'dark' || (theme === 'auto' && isSystemDark.value);
  // The attribute is set before the signal: components that use the signal read colours from the style sheet.
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

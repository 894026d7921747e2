import { effect, signal, type ReadonlySignal } from '@preact/signals';
import { render } from 'preact';
import { App } from './app.js';
import { listenToKeys } from './keys.js';
import { BrowserStore } from './state/browser-store.js';
import { openPreferences, ViewStore } from './state/kept-views.js';
import { Screen } from './state/screen.js';
import { agentNames } from './state/view.js';
import { Viewer } from './state/viewer.js';
import type { FirstRequests } from './state/first-requests.js';

/** A signal of whether a media query matches. */
function mediaSignal(query: string): ReadonlySignal<boolean> {
  const media = matchMedia(query);
  const matches = signal(media.matches);
  media.addEventListener('change', () => (matches.value = media.matches));
  return matches;
}

/** Resolves when the browser has drawn what has changed so far; at once in a hidden tab, which draws nothing. */
function drawn(): Promise<void> {
  if (document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve));
  });
}

/** Milliseconds within which the first answers are waited for, before the page is drawn without them. */
const firstAnswersMs = 80;

/** Resolves when the viewer has rows to draw, or has waited long enough: drawing the page once is faster than drawing it for each answer. */
async function firstAnswers({ agents, window }: Viewer): Promise<void> {
  let stop: (() => void) | undefined;
  await new Promise<void>((resolve) => {
    setTimeout(resolve, firstAnswersMs);
    stop = effect(() => {
      const { fields, failure } = agents.value;
      const isLoading = window.state.value.status === 'loading';
      if (failure !== undefined || (fields !== undefined && !isLoading)) resolve();
    });
  });
  stop?.();
}

/** Starts the page. `first` has the answers to requests that were already sent. */
export async function start(first: FirstRequests): Promise<void> {
  const store = new BrowserStore(() => localStorage);
  const preferences = openPreferences(store, mediaSignal('(max-width: 760px)'));
  const viewer = new Viewer(
    new ViewStore(window),
    preferences,
    store,
    new BrowserStore(() => sessionStorage),
    { first, drawn },
  );
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
    document.title = agent === '' ? 'Logstrata' : `${agentNames(agent).join(', ')} · Logstrata`;
  });

  effect(() => {
    const { cursor } = viewer.view.value;
    if (cursor !== undefined) page.screen.current.value = cursor;
  });

  // A step through the browser's history, or a typed address: an open menu is about the view before it.
  addEventListener('popstate', () => page.screen.close());

  const root = document.getElementById('viewer');
  if (root === null) throw new Error('the page has no place for the viewer');
  viewer.start();
  first.clear();
  listenToKeys(page);
  await firstAnswers(viewer);
  render(<App page={page} />, root);
}

import type { Page } from './parts.js';
import { rowId } from './scroller.js';
import { shifted } from './state/view.js';
import { neighbour, recordAt } from './state/record-window.js';

/** The keyboard shortcuts that the help lists. */
export const keyHelp: readonly { readonly keys: readonly string[]; readonly what: string }[] = [
  { keys: ['/'], what: 'Search for text' },
  { keys: ['f'], what: 'Add a filter' },
  { keys: ['a'], what: 'Choose the agents' },
  { keys: ['t'], what: 'Choose the time range' },
  { keys: ['[', ']'], what: 'Earlier range, later range' },
  { keys: ['j', 'k'], what: 'Next record, previous record' },
  { keys: ['Enter'], what: 'Open the record' },
  { keys: ['c'], what: 'Records around the open one, without filters' },
  { keys: ['y'], what: 'Copy a link to this view' },
  { keys: ['g', 'G'], what: 'First record, last record' },
  { keys: ['l'], what: 'Live: show new records as they arrive' },
  { keys: ['r'], what: 'Ask again' },
  { keys: ['w'], what: 'Wrap long lines' },
  { keys: ['n'], what: 'Newest records first, or last' },
  { keys: ['s'], what: 'Fields and their values' },
  { keys: ['h'], what: 'Histogram' },
  { keys: ['u'], what: 'Times in UTC or in the time zone of the browser' },
  { keys: ['v'], what: 'Saved views and history' },
  { keys: ['d'], what: 'Download' },
  { keys: ['Escape'], what: 'Close the open panel' },
  { keys: ['?'], what: 'This list' },
];

/** Moves to the row above or below the current one on the screen. */
function step({ viewer, screen }: Page, down: 1 | -1): void {
  const state = viewer.window.state.peek();
  const view = viewer.view.peek();
  const by = view.isNewestFirst ? -down : down;
  const from = screen.current.peek();
  // The first step goes to the newest record.
  const next = from === undefined ? undefined : neighbour(state, from, by);
  const first = recordAt(state, 'newer');
  const record = next ?? (from === undefined || neighbour(state, from, 0) === undefined ? first : undefined);
  if (record === undefined) return;
  screen.current.value = record.cursor;
  if (view.cursor !== undefined && !view.isContext) viewer.openRecord(record.cursor);
  // Takes the focus from a button that was clicked before: Enter should open the record, not press the button again.
  document.getElementById('rows')?.focus({ preventScroll: true });
  requestAnimationFrame(() =>
    document.getElementById(rowId(record.cursor))?.scrollIntoView({ block: 'nearest' }),
  );
}

function closeOne({ viewer, screen }: Page): void {
  const { isContext, cursor } = viewer.view.peek();
  if (screen.menu.peek() !== undefined) screen.close();
  else if (isContext) viewer.change({ isContext: false });
  else if (cursor !== undefined) viewer.change({ cursor: undefined });
}

function openCurrent({ viewer, screen }: Page): void {
  const cursor = screen.current.peek();
  if (cursor !== undefined) viewer.openRecord(cursor);
}

type Action = (page: Page) => void;

const actions: Readonly<Record<string, Action>> = {
  '/': () => document.getElementById('search')?.focus(),
  f: ({ screen }) => screen.toggle('filter'),
  a: ({ screen }) => screen.toggle('agents'),
  t: ({ screen }) => screen.toggle('range'),
  v: ({ screen }) => screen.toggle('views'),
  d: ({ screen }) => screen.toggle('download'),
  '?': ({ screen }) => screen.toggle('help'),
  '[': ({ viewer }) => viewer.change({ range: shifted(viewer.extent.peek(), -1) }),
  ']': ({ viewer }) => viewer.change({ range: shifted(viewer.extent.peek(), 1) }),
  j: (page) => step(page, 1),
  k: (page) => step(page, -1),
  Enter: openCurrent,
  c: ({ viewer }) => {
    const { cursor, isContext } = viewer.view.peek();
    if (cursor !== undefined) viewer.change({ isContext: !isContext, isLive: false });
  },
  y: ({ screen }) => void screen.copy(location.href, 'Link'),
  g: ({ viewer }) => void goToEnd(viewer, true),
  G: ({ viewer }) => void goToEnd(viewer, false),
  Home: ({ viewer }) => void goToEnd(viewer, true),
  End: ({ viewer }) => void goToEnd(viewer, false),
  l: ({ viewer }) => viewer.toggleLive(),
  r: ({ viewer }) => viewer.askAgain(),
  w: ({ viewer }) => viewer.change({ isWrapped: !viewer.view.peek().isWrapped }),
  n: ({ viewer }) => viewer.change({ isNewestFirst: !viewer.view.peek().isNewestFirst }),
  s: ({ viewer: { preferences } }) => (preferences.hasFields.value = !preferences.hasFields.peek()),
  h: ({ viewer: { preferences } }) => (preferences.hasHistogram.value = !preferences.hasHistogram.peek()),
  u: ({ viewer: { preferences } }) =>
    (preferences.zone.value = preferences.zone.peek() === 'utc' ? 'local' : 'utc'),
};

/** Scrolls to the upper or the lower end of the records. */
function goToEnd(viewer: Page['viewer'], isAbove: boolean): Promise<void> {
  return isAbove === viewer.view.peek().isNewestFirst
    ? viewer.window.openNewest()
    : viewer.window.openOldest();
}

function takesText(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement ||
    (target instanceof HTMLInputElement && target.type !== 'checkbox')
  );
}

/** Handles keyboard shortcuts. Keys typed into an input are ignored, except Escape. */
export function listenToKeys(page: Page): void {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const { target } = event;
    if (event.key === 'Escape') {
      // Browsers clear a search input at Escape, which is not wanted here.
      event.preventDefault();
      if (takesText(target) && page.screen.menu.peek() === undefined) (target as HTMLElement).blur();
      else closeOne(page);
      return;
    }
    if (takesText(target) || page.screen.menu.peek() === 'help') return;
    // A focused button or link handles Enter itself.
    if (event.key === 'Enter' && (target instanceof HTMLButtonElement || target instanceof HTMLAnchorElement))
      return;
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : undefined;
    if (action === undefined) return;
    event.preventDefault();
    action(page);
  });
}

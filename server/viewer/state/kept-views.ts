import { signal, type ReadonlySignal, effect, type Signal } from '@preact/signals';
import type { BrowserStore } from './browser-store.js';
import type { Zone } from './texts.js';
import { addressOf, readAddress, asksTheSame, type View } from './view.js';

/** A stored address and its name. */
export interface KeptView {
  readonly name: string;
  readonly address: string;
}

function readViews(store: BrowserStore, name: string): readonly KeptView[] {
  const found = store.read(name);
  if (!Array.isArray(found)) return [];
  return (found as unknown[]).filter(
    (view): view is KeptView =>
      typeof view === 'object' &&
      view !== null &&
      typeof (view as KeptView).name === 'string' &&
      typeof (view as KeptView).address === 'string' &&
      (view as KeptView).address.startsWith('#/'),
  );
}

/** A list of views in the browser's storage, newest first, of which no two have the same `key`. */
export class ViewList {
  private readonly list;

  constructor(
    private readonly store: BrowserStore,
    private readonly listName: string,
    private readonly key: keyof KeptView,
    private readonly max: number,
  ) {
    this.list = signal(readViews(store, listName));
  }

  get views(): ReadonlySignal<readonly KeptView[]> {
    return this.list;
  }

  /** Puts a view at the top, in place of one with the same key. */
  put(view: KeptView): void {
    this.keep([view, ...this.without(view[this.key])]);
  }

  remove(key: string): void {
    this.keep(this.without(key));
  }

  clear(): void {
    this.keep([]);
  }

  private without(key: string): readonly KeptView[] {
    return this.list.peek().filter((view) => view[this.key] !== key);
  }

  private keep(views: readonly KeptView[]): void {
    this.list.value = views.slice(0, this.max);
    this.store.write(this.listName, this.list.value);
  }
}

/** `auto` follows the system. */
export type Theme = 'auto' | 'light' | 'dark';

/** The preferences of the user. They are not part of the address, so a shared address does not change them. */
export interface Preferences {
  readonly theme: Signal<Theme>;
  readonly zone: Signal<Zone>;
  readonly hasFields: Signal<boolean>;
  readonly hasHistogram: Signal<boolean>;
}

function stored<T extends string | boolean>(
  store: BrowserStore,
  name: string,
  usual: T,
  known: readonly T[],
): Signal<T> {
  const found = store.read(name) as T;
  const value = signal<T>(known.includes(found) ? found : usual);
  effect(() => store.write(name, value.value));
  return value;
}

/**
 * Whether the fields pane is shown. On a narrow screen it would cover the records, so it is hidden there until the user opens it, and that
 * choice is not stored.
 */
function fieldsPreference(store: BrowserStore, isNarrow: ReadonlySignal<boolean>): Signal<boolean> {
  const kept = stored<boolean>(store, 'fields', true, [true, false]);
  const shown = signal(false);
  effect(() => {
    shown.value = !isNarrow.value && kept.peek();
  });
  effect(() => {
    const { value } = shown;
    if (!isNarrow.peek()) kept.value = value;
  });
  return shown;
}

/** Reads the preferences from the browser's storage, and stores changes. */
export function openPreferences(store: BrowserStore, isNarrow: ReadonlySignal<boolean>): Preferences {
  return {
    theme: stored<Theme>(store, 'theme', 'auto', ['auto', 'light', 'dark']),
    zone: stored<Zone>(store, 'zone', 'local', ['local', 'utc']),
    hasFields: fieldsPreference(store, isNarrow),
    hasHistogram: stored<boolean>(store, 'histogram', true, [true, false]),
  };
}

/** The parts of `window` that the view store uses; tests can replace them. */
export interface AddressBar {
  readonly location: { readonly hash: string };
  readonly history: Pick<History, 'pushState' | 'replaceState'>;
  addEventListener(type: 'popstate', call: () => void): void;
}

/** Keeps the view and the page's address in step. */
export class ViewStore {
  private readonly current;

  constructor(private readonly bar: AddressBar) {
    this.current = signal(readAddress(bar.location.hash));
    bar.addEventListener('popstate', () => (this.current.value = readAddress(bar.location.hash)));
  }

  /** The current view. */
  get view(): ReadonlySignal<View> {
    return this.current;
  }

  /** Changes the view. A change that requests other records adds an entry to the browser's history; one of the display does not. */
  change(part: Partial<View>): void {
    const before = this.current.peek();
    const after = { ...before, ...part };
    const address = addressOf(after);
    if (address !== addressOf(before) || this.bar.location.hash === '') {
      // A page that was opened without an address gets one without a new history entry.
      const isStep =
        before.agent !== '' && (!asksTheSame(before, after) || before.isContext !== after.isContext);
      if (isStep) this.bar.history.pushState(null, '', address);
      else this.bar.history.replaceState(null, '', address);
    }
    this.current.value = after;
  }

  /** Opens a stored address. */
  open(address: string): void {
    this.bar.history.pushState(null, '', address);
    this.current.value = readAddress(address);
  }
}

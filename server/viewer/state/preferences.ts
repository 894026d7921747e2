import { effect, signal, type Signal } from '@preact/signals';
import type { Zone } from '../records/time-text.js';
import type { BrowserStore } from './browser-store.js';

/** `auto` is what the system says. */
export type Theme = 'auto' | 'light' | 'dark';

/** What is this reader's and not the view's: an address that is passed on leaves it as it is. */
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

/** The preferences as this browser keeps them. `isNarrow`: on a phone the fields would cover the records. */
export function openPreferences(store: BrowserStore, isNarrow: boolean): Preferences {
  const both = [true, false];
  return {
    theme: stored<Theme>(store, 'theme', 'auto', ['auto', 'light', 'dark']),
    zone: stored<Zone>(store, 'zone', 'local', ['local', 'utc']),
    hasFields: isNarrow ? signal(false) : stored<boolean>(store, 'fields', true, both),
    hasHistogram: stored<boolean>(store, 'histogram', true, both),
  };
}

import { effect, signal, type ReadonlySignal, type Signal } from '@preact/signals';
import type { Zone } from '../records/time-text.js';
import type { BrowserStore } from './browser-store.js';

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

import { effect, signal, type ReadonlySignal, type Signal } from '@preact/signals';
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

/** On a narrow screen the fields would cover the records: they are shown when somebody asks for them, and that is not kept. */
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

/** The preferences as this browser keeps them. */
export function openPreferences(store: BrowserStore, isNarrow: ReadonlySignal<boolean>): Preferences {
  return {
    theme: stored<Theme>(store, 'theme', 'auto', ['auto', 'light', 'dark']),
    zone: stored<Zone>(store, 'zone', 'local', ['local', 'utc']),
    hasFields: fieldsPreference(store, isNarrow),
    hasHistogram: stored<boolean>(store, 'histogram', true, [true, false]),
  };
}

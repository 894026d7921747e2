import { signal, type ReadonlySignal } from '@preact/signals';
import type { BrowserStore } from './browser-store.js';

/** A stored address and its name. */
export interface KeptView {
  readonly name: string;
  readonly address: string;
}

/** Maximum number of queries in the history. */
const historyMax = 50;
/** Maximum number of views that the user can save. */
const savedMax = 200;

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

/** A list of views in the browser's storage, newest first. */
class ViewList {
  protected readonly list;

  constructor(
    private readonly store: BrowserStore,
    private readonly listName: string,
    private readonly max: number,
  ) {
    this.list = signal(readViews(store, listName));
  }

  get views(): ReadonlySignal<readonly KeptView[]> {
    return this.list;
  }

  protected put(views: readonly KeptView[]): void {
    this.list.value = views.slice(0, this.max);
    this.store.write(this.listName, this.list.value);
  }
}

/** The views that were queried, each address once. */
export class QueryHistory extends ViewList {
  constructor(store: BrowserStore) {
    super(store, 'history', historyMax);
  }

  /** Puts a view at the top. */
  note(view: KeptView): void {
    const [newest, ...others] = this.list.peek();
    if (newest?.address === view.address) return;
    const rest = newest === undefined ? [] : [newest, ...others];
    this.put([view, ...rest.filter(({ address }) => address !== view.address)]);
  }

  clear(): void {
    this.put([]);
  }
}

/** Views that the user has saved under names. */
export class SavedViews extends ViewList {
  constructor(store: BrowserStore) {
    super(store, 'views', savedMax);
  }

  /** Saves a view; replaces one of the same name. */
  save(view: KeptView): void {
    this.put([view, ...this.list.peek().filter(({ name }) => name !== view.name)]);
  }

  remove(name: string): void {
    this.put(this.list.peek().filter((view) => view.name !== name));
  }
}

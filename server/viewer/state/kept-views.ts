import { signal, type ReadonlySignal } from '@preact/signals';
import type { BrowserStore } from './browser-store.js';

/** An address that is kept, and what it is called. */
export interface KeptView {
  readonly name: string;
  readonly address: string;
}

/** Queries that are remembered; older ones than so many are seldom looked for. */
const historyMax = 50;
/** Views that somebody saves by hand. */
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

/** A list of views in this browser: the newest first, each address once. */
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

/** What was asked. */
export class QueryHistory extends ViewList {
  constructor(store: BrowserStore) {
    super(store, 'history', historyMax);
  }

  /** Puts a view to the front. */
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

/** Views under names that somebody gave them. */
export class SavedViews extends ViewList {
  constructor(store: BrowserStore) {
    super(store, 'views', savedMax);
  }

  /** Saves a view; one of the same name is replaced. */
  save(view: KeptView): void {
    this.put([view, ...this.list.peek().filter(({ name }) => name !== view.name)]);
  }

  remove(name: string): void {
    this.put(this.list.peek().filter((view) => view.name !== name));
  }
}

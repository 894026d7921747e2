/** Where things lie that are this browser's: preferences, saved views, the history. */
const prefix = 'logstrata.';

/** What a browser keeps, under names of ours. A browser that keeps nothing (a private window, full storage) loses nothing but that. */
export class BrowserStore {
  constructor(private readonly storage: () => Storage) {}

  /** What was stored under a name; undefined where nothing is, or nothing that can be read. */
  read(name: string): unknown {
    try {
      const text = this.storage().getItem(prefix + name);
      return text === null ? undefined : (JSON.parse(text) as unknown);
    } catch {
      return undefined;
    }
  }

  write(name: string, value: unknown): void {
    try {
      if (value === undefined) this.storage().removeItem(prefix + name);
      else this.storage().setItem(prefix + name, JSON.stringify(value));
    } catch {
      // Storage is full or forbidden: what is on the page still holds until it is closed.
    }
  }
}

/** Prefix of the names in the browser's storage. */
const prefix = 'logstrata.';

/** Stores values in the browser, as JSON. Where the browser stores nothing (private window, full storage), values are just not kept. */
export class BrowserStore {
  constructor(private readonly storage: () => Storage) {}

  /** The value stored under a name; undefined where there is none, or it can't be parsed. */
  read(name: string): unknown {
    try {
      const text = this.storage().getItem(prefix + name);
      return text === null ? undefined : (JSON.parse(text) as unknown);
    } catch {
      return undefined;
    }
  }

  /** Stores a value as JSON under a name; undefined removes it. */
  write(name: string, value: unknown): void {
    try {
      if (value === undefined) this.storage().removeItem(prefix + name);
      else this.storage().setItem(prefix + name, JSON.stringify(value));
    } catch {
      // Storage is full or forbidden: the value is kept only while the page is open.
    }
  }
}
